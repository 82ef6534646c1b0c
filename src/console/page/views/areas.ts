import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { duration } from '../amounts.ts';
import { areaDraft, beginDraft } from '../areaDraft.ts';
import { html } from '../html.ts';
import { useLoaded } from '../loaded.ts';
import { chosenArea, drawnAreas } from '../map/mapState.ts';
import type { Area } from '../types.ts';
import { AreaForm } from './areaForm.ts';
import { ChosenArea } from './chosenArea.ts';
import { Curl, List } from '../parts.ts';

const PAGE = 50;

export function Areas(): VNode {
  const [offset, setOffset] = useState(0);
  const [said, setSaid] = useState('');
  const path = `/api/v1/areas?limit=${PAGE}&offset=${offset}`;
  const { reply, reload } = useLoaded<readonly Area[]>(path);
  const listed = reply?.ok ? reply.data : [];
  const chosen = [...listed, ...drawnAreas.value.areas].find(({ id }) => id === chosenArea.value);
  const choose = (id: number | null): void => {
    chosenArea.value = id;
  };
  const begin = (area: Area | null): void => {
    setSaid('');
    beginDraft(area);
  };
  const done = (message: string): void => {
    setSaid(message);
    choose(null);
    reload();
  };
  const row = (area: Area): VNode => html`<li key=${area.id}>
    <button type="button" class="row" aria-pressed=${chosen?.id === area.id} onClick=${() => choose(area.id)}>
      ${area.name}<small>${area.type}${area.dwell_seconds > 0 ? `, after ${duration(area.dwell_seconds)}` : ''}</small>
    </button>
  </li>`;
  return html`
    <button type="button" onClick=${() => begin(null)}>New area</button>
    <p role="status">${said}</p>
    <${AreaForm} key=${areaDraft.value?.id} done=${done} />
    <${List} reply=${reply} reload=${reload}
      empty=${offset > 0 ? 'No more areas.' : 'There are no areas yet. Make one with "New area", or many from a file with: fleet area:sync FILE --email …'}
      show=${(areas: readonly Area[]) => html`<ul class="rows">${areas.map(row)}</ul>`} />
    ${offset > 0 && html`<button type="button" onClick=${() => setOffset(offset - PAGE)}>Previous</button>`}
    ${listed.length === PAGE && html`<button type="button" onClick=${() => setOffset(offset + PAGE)}>Next</button>`}
    <${Curl} call=${{ method: 'GET', path }} />
    ${chosen !== undefined && html`<${ChosenArea} key=${chosen.id} area=${chosen} edit=${() => begin(chosen)} close=${() => choose(null)} />`}
  `;
}
