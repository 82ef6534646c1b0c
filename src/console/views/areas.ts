import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { nameOf } from '../findDevices.ts';
import { html } from '../html.ts';
import { events } from '../liveFleet.ts';
import { useLoaded, usePaced } from '../loaded.ts';
import type { Area, DeviceInArea } from '../types.ts';
import { Curl, List, Time } from './parts.ts';

const PAGE = 50;
/** An area with an entry every second must not use up the calls of an hour. */
const INSIDE_EVERY_MS = 5_000;

export function Areas(): VNode {
  const [offset, setOffset] = useState(0);
  const [chosen, setChosen] = useState<Area | null>(null);
  const path = `/api/v1/areas?limit=${PAGE}&offset=${offset}`;
  const { reply, reload } = useLoaded<readonly Area[]>(path);
  const count = reply?.ok ? reply.data.length : 0;
  const row = (area: Area): VNode => html`<li key=${area.id}>
    <button type="button" class="row" aria-pressed=${chosen?.id === area.id} onClick=${() => setChosen(area)}>
      ${area.name}<small>${area.type}${area.dwell_seconds > 0 ? `, after ${area.dwell_seconds} s` : ''}</small>
    </button>
  </li>`;
  return html`
    <${List} reply=${reply} reload=${reload}
      empty=${offset > 0 ? 'No more areas.' : 'There are no areas yet. Make some with POST /api/v3/areas, or a file with: fleet area:sync FILE --email …'}
      show=${(areas: readonly Area[]) => html`<ul class="rows">${areas.map(row)}</ul>`} />
    ${offset > 0 && html`<button type="button" onClick=${() => setOffset(offset - PAGE)}>Previous</button>`}
    ${count === PAGE && html`<button type="button" onClick=${() => setOffset(offset + PAGE)}>Next</button>`}
    <${Curl} call=${{ method: 'GET', path }} />
    ${chosen !== null && html`<${Inside} key=${chosen.id} area=${chosen} />`}
  `;
}

/** Who is in an area; asked again after entries and exits there. */
function Inside({ area }: { area: Area }): VNode {
  const last = events.value.find(({ data }) => data.areaId === area.id)?.id ?? 0;
  const round = usePaced(last, INSIDE_EVERY_MS);
  const path = `/api/v1/areas/${area.id}/devices?limit=200`;
  return html`<section aria-label=${`Who is in ${area.name}`}>
    <h3>In ${area.name}</h3>
    <${InsideList} round=${round} path=${path} />
    <${Curl} call=${{ method: 'GET', path }} />
  </section>`;
}

function InsideList({ path, round }: { path: string; round: number }): VNode {
  const { reply, reload } = useLoaded<readonly DeviceInArea[]>(path, round);
  return html`<${List} reply=${reply} reload=${reload} empty="Nobody is inside. Whoever comes in is listed here."
    show=${(inside: readonly DeviceInArea[]) =>
      html`<ul class="rows">${inside.map(
        ({ device, since, entered_at, dwell_left_seconds }) => html`<li key=${device.imei}>
        ${nameOf(device)} <small>since <${Time} at=${since} />${entered_at === null && `, ${dwell_left_seconds} s more until it counts as entered`}</small>
      </li>`,
      )}</ul>`} />`;
}
