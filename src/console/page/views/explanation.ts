import type { VNode } from 'preact';
import { counted, duration } from '../amounts.ts';
import { html } from '../html.ts';
import { useLoaded } from '../loaded.ts';
import { type TimeLine, timeLine } from '../timeLine.ts';
import type { Explanation } from '../types.ts';
import { Curl, Time } from '../parts.ts';

/** What explain answers at this path, with a picture of it. `dwellSeconds`: the minimum stay that is drawn. */
export function Explained({ path, dwellSeconds }: { path: string; dwellSeconds: number }): VNode {
  const { reply, reload } = useLoaded<Explanation>(path);
  if (reply === null) return html`<p role="status">Looking at the points…</p>`;
  if (!reply.ok)
    return html`<p class="error" role="alert">${reply.message} <button type="button" onClick=${reload}>Try again</button></p>`;
  const { verdict, message, visits, gaps, notes } = reply.data;
  const { window } = reply.meta;
  return html`<div class="why" role="status">
    <p><strong>${verdict.replaceAll('_', ' ')}</strong>: ${message}</p>
    ${window !== undefined && html`<${Picture} line=${timeLine(reply.data, window, dwellSeconds)} window=${window} />`}
    <ul>${visits.map(
      (
        visit,
      ) => html`<li>inside from <${Time} at=${visit.first_inside_at} /> to <${Time} at=${visit.last_inside_at} />, ${counted(visit.points, 'point')},
        ${` ${duration(visit.seconds)}`}, ${visit.outcome.replaceAll('_', ' ')}</li>`,
    )}${gaps.map(({ from, to }) => html`<li>no points from <${Time} at=${from} /> to <${Time} at=${to} /></li>`)}</ul>
    <ul>${notes.map(({ message: note }) => html`<li>${note}</li>`)}</ul>
    <${Curl} call=${{ method: 'GET', path }} />
  </div>`;
}

function Picture({
  line,
  window,
}: {
  line: TimeLine;
  window: { readonly from: string; readonly to: string };
}): VNode {
  const at = (share: number): string => `${share}%`;
  return html`<figure class="time-line">
    <svg role="img" aria-label=${line.text} width="100%" height="36">
      <rect class="window" x="0" y="14" width="100%" height="8" />
      ${line.gaps.map(({ x, width }) => html`<rect class="gap" x=${at(x)} y="14" width=${at(width)} height="8" />`)}
      ${line.visits.map(
        ({
          x,
          width,
          outcome,
          threshold,
        }) => html`<rect class=${`visit ${outcome}`} x=${at(x)} y="6" width=${at(Math.max(width, 0.4))} height="24" />
        ${threshold !== null && html`<line class="threshold" x1=${at(threshold)} x2=${at(threshold)} y1="0" y2="36" />`}`,
      )}
    </svg>
    <figcaption><${Time} at=${window.from} /><${Time} at=${window.to} /></figcaption>
    <p class="legend"><span class="key-entered">entered</span> <span class="key-passed">inside, not entered</span>
      <span class="key-gap">no points</span> <span class="key-threshold">minimum stay reached</span></p>
  </figure>`;
}
