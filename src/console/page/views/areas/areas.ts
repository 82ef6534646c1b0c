import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { areaAddress, vehicleAddress } from '../../address.ts';
import { mayChange, useLoaded, usePaced } from '../../api.ts';
import { areaDraft, beginDraft } from '../../areaDraft.ts';
import { nameOf } from '../../fleet.ts';
import { Time } from '../../format.ts';
import { Panel } from '../../forms.ts';
import { Icon } from '../../icons.ts';
import { events } from '../../liveFleet.ts';
import { askedPresence, chosenArea, drawnAreas, seekArea } from '../../map/mapState.ts';
import { CallBehind, counted, duration, html, List } from '../../parts.ts';
import type { Area, AreaDevice, AreaOverlap } from '../../types.ts';
import { useAreas } from '../eventBar.ts';
import { AskWhy } from '../explanation.ts';
import { AreaForm } from './areaForm.ts';
import { Nearest } from './nearest.ts';
import { WasHere } from './presence.ts';

const PAGE = 50;
/** Of those that a text finds, or that overlap another one: more than people read. */
const FOUND_MAX = 50;
const NO_AREAS =
  'There are no areas yet. Make one with "New area", or many from a file with: fleet area:sync FILE --email …';

export function Areas(): VNode {
  const [offset, setOffset] = useState(0);
  const [said, setSaid] = useState('');
  const [text, setText] = useState('');
  const path = `/api/v1/areas?limit=${PAGE}&offset=${offset}`;
  const { reply, reload } = useLoaded<readonly Area[]>(path);
  const listed = reply?.ok ? reply.data : [];
  const chosen = [...listed, ...drawnAreas.value.areas].find(({ id }) => id === chosenArea.value);
  const begin = (area: Area | null): void => {
    setSaid('');
    beginDraft(area);
  };
  const done = (message: string): void => {
    setSaid(message);
    seekArea(null);
    reload();
  };
  const row = (area: Area): VNode => html`<li key=${area.id}>
    <button type="button" class="row" aria-pressed=${chosen?.id === area.id} onClick=${() => seekArea(area.id)}>
      <svg class="swatch" aria-hidden="true"><rect width="12" height="12" rx="3" fill=${area.color} /></svg>${area.name}<small>${area.type}${area.dwell_seconds > 0 ? `, after ${duration(area.dwell_seconds)}` : ''}</small>
    </button>
  </li>`;
  return html`
    <button type="button" class=${areaDraft.value === null ? 'main' : ''} onClick=${() => begin(null)}><${Icon} name="add" />${mayChange() ? 'New area' : 'Try an area'}</button>
    <p role="status">${said}</p>
    <${AreaForm} key=${areaDraft.value?.id} done=${done} />
    ${chosen !== undefined && html`<${ChosenArea} key=${chosen.id} area=${chosen} edit=${() => begin(chosen)} close=${() => seekArea(null)} />`}
    ${
      (listed.length > 0 || text !== '') &&
      html`<label>Find an area <input type="search" autocomplete="off" value=${text}
        onInput=${(event: InputEvent) => setText((event.currentTarget as HTMLInputElement).value)} /></label>`
    }
    ${
      text.trim() !== ''
        ? html`<${FoundAreas} text=${text} row=${row} />`
        : html`<${List} reply=${reply} reload=${reload}
            empty=${offset > 0 ? 'No more areas.' : html`<${Icon} name="areas" /> ${mayChange() ? NO_AREAS : 'There are no areas.'}`}
            show=${(areas: readonly Area[]) => html`<ul class="rows">${areas.map(row)}</ul>`} />
          ${offset > 0 && html`<button type="button" onClick=${() => setOffset(offset - PAGE)}>Previous</button>`}
          ${listed.length === PAGE && html`<button type="button" onClick=${() => setOffset(offset + PAGE)}>Next</button>`}`
    }
    <${CallBehind} call=${{ method: 'GET', path }} />
  `;
}

/** Those of the areas whose names have the text. */
function FoundAreas({ text, row }: { text: string; row: (area: Area) => VNode }): VNode {
  const wanted = text.trim().toLowerCase();
  const found = useAreas(true).filter(({ name }) => name.toLowerCase().includes(wanted));
  const more = found.length > FOUND_MAX ? `; the first ${FOUND_MAX} are shown` : '';
  return html`<p role="status">${counted(found.length, 'area')}${more}</p>
    <ul class="rows">${found.slice(0, FOUND_MAX).map(row)}</ul>`;
}

/** An area with an entry every second must not use up the calls of an hour. */
const INSIDE_EVERY_MS = 5_000;

/** Who is in an area, asked again after entries and exits there, and what can be done with it. */
function ChosenArea({ area, edit, close }: { area: Area; edit: () => void; close: () => void }): VNode {
  const [isAsking, setAsking] = useState(false);
  const [isNear, setNear] = useState(false);
  const [isCompared, setCompared] = useState(false);
  const [isOpened, setOpened] = useState(false);
  const isPresenceOpen = isOpened || askedPresence.value !== null;
  const openPresence = (isOpen: boolean): void => {
    setOpened(isOpen);
    if (!isOpen) askedPresence.value = null;
  };
  const last = events.value.find(({ data }) => 'areaId' in data && data.areaId === area.id)?.id ?? 0;
  const round = usePaced(last, INSIDE_EVERY_MS);
  const path = `/api/v1/areas/${area.id}/devices?limit=200`;
  const isMoreShown = isNear || isCompared || isPresenceOpen || isAsking;
  const opener = (isOpen: boolean, open: (isOpen: boolean) => void, label: string): VNode =>
    html`<button type="button" aria-expanded=${isOpen} onClick=${() => open(!isOpen)}>${label}</button>`;
  return html`<${Panel} label=${`Who is in ${area.name}`} close=${close}>
    <p class="tools">
      <button type="button" onClick=${edit}>${mayChange() ? 'Edit the area' : 'Try changes'}</button>
      ${opener(isNear, setNear, 'Nearest vehicles')}
      ${opener(isCompared, setCompared, 'Overlaps')}
      ${opener(isPresenceOpen, openPresence, 'Who was here?')}
      ${opener(isAsking, setAsking, 'Why did it not report?')}
    </p>
    ${isNear && html`<${Nearest} area=${area} close=${() => setNear(false)} />`}
    ${isCompared && html`<${Overlapping} area=${area} close=${() => setCompared(false)} />`}
    ${isPresenceOpen && html`<${WasHere} area=${area} close=${() => openPresence(false)} />`}
    ${isAsking && html`<${AskWhy} area=${area} close=${() => setAsking(false)} />`}
    ${isMoreShown && html`<h3>Inside now</h3>`}
    <${InsideList} round=${round} path=${path} />
    <${CallBehind} call=${{ method: 'GET', path }} />
  <//>`;
}

/** The areas that have a part in common with an area, the largest part first. */
function Overlapping({ area, close }: { area: Area; close: () => void }): VNode {
  const path = `/api/v1/areas/${area.id}/overlaps`;
  const { reply, reload } = useLoaded<readonly AreaOverlap[]>(path);
  return html`<${Panel} label=${`What overlaps ${area.name}`} close=${close}>
    <${List} reply=${reply} reload=${reload} empty="No other area has a part of it."
      show=${(all: readonly AreaOverlap[]) => html`<ul class="rows">${all.slice(0, FOUND_MAX).map(
        ({ area: other, share, share_of_other }) => html`<li key=${other.id}>
          <a class="plain" href=${areaAddress(other.id)}>${other.name}</a>
          <small>${percent(share)} of ${area.name}, ${percent(share_of_other)} of ${other.name}</small>
        </li>`,
      )}</ul>
      ${all.length > FOUND_MAX && html`<p class="empty">The largest ${FOUND_MAX} of ${all.length} are listed.</p>`}`} />
    <${CallBehind} call=${{ method: 'GET', path }} />
  <//>`;
}

/** "12 %", "100 %"; less than one: "0.3 %". */
export function percent(share: number): string {
  const value = 100 * share;
  return `${value < 1 ? Number(value.toPrecision(1)) : Math.round(value)} %`;
}

function InsideList({ path, round }: { path: string; round: number }): VNode {
  const { reply, reload } = useLoaded<readonly AreaDevice[]>(path, round);
  return html`<${List} reply=${reply} reload=${reload} empty="No device is inside. Devices that enter are listed here."
    show=${(inside: readonly AreaDevice[]) =>
      html`<ul class="rows">${inside.map(
        ({ device, since, entered_at, dwell_left_seconds }) => html`<li key=${device.imei}>
        <a class="plain" href=${vehicleAddress(device.imei)}>${nameOf(device)}</a> <small>since <${Time} at=${since} />${entered_at === null && `, ${duration(Math.ceil(dwell_left_seconds))} more until it counts as entered`}</small>
      </li>`,
      )}</ul>`} />`;
}
