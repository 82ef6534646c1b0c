import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { changeDraft } from '../../areaDraft.ts';
import { Time } from '../../format.ts';
import { nameOfImei } from '../../liveFleet.ts';
import { counted, duration, html } from '../../parts.ts';
import type { BacktestResult } from '../../types.ts';
import { dwellChanges } from './dwellChanges.ts';

const EVENTS_SHOWN = 20;

/**
 * How many events a draft has with each minimum stay. A slider moves over these, says what each would change against the
 * present one, and a button takes it into the form.
 */
export function DwellPicture({
  results,
  present,
}: {
  /** From the shortest minimum stay to the longest. */
  results: readonly BacktestResult[];
  present: BacktestResult;
}): VNode | null {
  const [n, setAt] = useState(results.indexOf(present));
  const tried = results[n];
  if (tried === undefined) return null;
  const { dwell_seconds } = tried;
  const isPresent = tried === present;
  return html`<figure class="dwells" aria-label="Minimum stays that were tried">
    <${Bars} results=${results} tried=${tried} />
    <input type="range" aria-label="Minimum stay" min="0" max=${results.length - 1} step="1" value=${n}
      aria-valuetext=${textOf(tried)} style=${{ width: `calc(${100 - 100 / results.length}% + 16px)`, marginInline: `calc(${50 / results.length}% - 8px)` }}
      onInput=${(event: InputEvent) => setAt(Number((event.currentTarget as HTMLInputElement).value))} />
    <figcaption>
      <p role="status">${textOf(tried)}${isPresent ? ', as the form has it' : ''}.</p>
      <button type="button" aria-disabled=${isPresent} onClick=${() => changeDraft({ dwell_seconds })}>Take ${duration(dwell_seconds)} as minimum stay</button>
      ${!isPresent && html`<${Changes} present=${present} tried=${tried} />`}
      <details><summary>All of them as a table</summary><${Table} results=${results} /></details>
    </figcaption>
  </figure>`;
}

function textOf({ dwell_seconds, entries, exits }: BacktestResult): string {
  return `${duration(dwell_seconds)}: ${counted(entries, 'entry', 'entries')}, ${counted(exits, 'exit')}`;
}

/** Of the picture, in pixels: bars end where the numbers above them have room. */
const HEIGHT = { bars: 72, number: 16, label: 18 };

/** A stacked column for each minimum stay: entries below, exits above. */
function Bars({ results, tried }: { results: readonly BacktestResult[]; tried: BacktestResult }): VNode {
  const width = 100 / results.length;
  const most = Math.max(1, ...results.map(({ entries, exits }) => entries + exits));
  const bottom = HEIGHT.number + HEIGHT.bars;
  const label = `Events by minimum stay. ${results.map(textOf).join('; ')}`;
  const column = (result: BacktestResult, n: number): VNode => {
    const { dwell_seconds, entries, exits } = result;
    const heightOf = (count: number): number => (HEIGHT.bars * count) / most;
    const top = bottom - heightOf(entries + exits);
    const x = `${width * (n + 0.2)}%`;
    const middle = `${width * (n + 0.5)}%`;
    return html`<g class=${result === tried ? 'tried' : ''}>
      <rect class="exits" x=${x} width=${`${width * 0.6}%`} y=${top} height=${heightOf(exits)} />
      <rect class="entries" x=${x} width=${`${width * 0.6}%`} y=${top + heightOf(exits)} height=${heightOf(entries)} />
      <text x=${middle} y=${top - 4}>${entries + exits}</text>
      <text class="label" x=${middle} y=${bottom + HEIGHT.label - 4}>${duration(dwell_seconds)}</text>
    </g>`;
  };
  return html`<svg role="img" aria-label=${label} width="100%" height=${bottom + HEIGHT.label}>${results.map(column)}</svg>
    <p class="legend"><span class="key-entries">entries</span> <span class="key-exits">exits</span></p>`;
}

/** Which events another minimum stay would bring, and which it would not. */
function Changes({ present, tried }: { present: BacktestResult; tried: BacktestResult }): VNode {
  const changes = dwellChanges(present, tried);
  if (changes === null)
    return html`<p class="empty">They have too many events to be compared one by one. Draw a smaller area, or try it on last week.</p>`;
  const { gone, added, moved, movedMaxSeconds } = changes;
  return html`
    <p>Against ${duration(present.dwell_seconds)}, as the form has it: ${gone.length} gone, ${added.length} new${moved > 0 && `; ${counted(moved, 'entry', 'entries')} ${tried.dwell_seconds > present.dwell_seconds ? 'later' : 'earlier'} by ${duration(movedMaxSeconds)} at most`}.</p>
    <${EventList} label="Gone" events=${gone} /><${EventList} label="New" events=${added} />`;
}

function EventList({ label, events }: { label: string; events: BacktestResult['events'] }): VNode | null {
  if (events.length === 0) return null;
  const first = events.slice(0, EVENTS_SHOWN);
  return html`<h4>${label}${events.length > first.length && `: the first ${first.length}`}</h4>
    <ul class="rows" aria-label=${label}>${first.map(
      ({ device, event, timestamp }) =>
        html`<li key=${`${device} ${timestamp}`}>${nameOfImei(device)}: ${event} <small><${Time} at=${timestamp} /></small></li>`,
    )}</ul>`;
}

function Table({ results }: { results: readonly BacktestResult[] }): VNode {
  return html`<table class="figures">
    <thead><tr><th scope="col">Minimum stay</th><th scope="col" class="number">Entries</th><th scope="col" class="number">Exits</th><th scope="col" class="number">Devices</th></tr></thead>
    <tbody>${results.map(
      ({ dwell_seconds, entries, exits, devices }) => html`<tr key=${dwell_seconds}>
        <th scope="row">${duration(dwell_seconds)}</th><td class="number">${entries}</td><td class="number">${exits}</td><td class="number">${devices}</td>
      </tr>`,
    )}</tbody>
  </table>`;
}
