import type { VNode } from 'preact';
import { areaDraft, canUndo, draftVertex, removeVertex, undoStep } from '../../areaDraft.ts';
import { html } from '../../parts.ts';

/** What can be done to the vertices of a draft without a pointer; the chosen one stands out on the map. */
export function DraftTools(): VNode | null {
  const body = areaDraft.value?.body;
  if (body === undefined) return null;
  const count = body.type === 'polygon' || body.type === 'polyline' ? body.points.length : 0;
  const chosen = draftVertex.value;
  const step = (by: number): void => {
    draftVertex.value = ((chosen ?? (by > 0 ? -1 : 0)) + by + count) % count;
  };
  return html`<div class="tools" role="group" aria-label="Drawing">
    <button type="button" aria-keyshortcuts="Control+Z" disabled=${!canUndo.value} onClick=${undoStep}>Undo</button>
    ${
      count > 0 &&
      html`
        <button type="button" onClick=${() => step(-1)}>Previous vertex</button>
        <button type="button" onClick=${() => step(1)}>Next vertex</button>
        <button type="button" aria-keyshortcuts="Delete" disabled=${chosen === null} onClick=${removeVertex}>${
          chosen === null ? 'Remove vertex' : `Remove vertex ${chosen + 1} of ${count}`
        }</button>`
    }
  </div>`;
}
