import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { call } from '../../api.ts';
import { type AreaBody, areaDraft } from '../../areaDraft.ts';
import { Sentence, Time } from '../../format.ts';
import { Field, type Sending, wordsOf } from '../../forms.ts';
import { nameOfImei } from '../../liveFleet.ts';
import { CallBehind, counted, html } from '../../parts.ts';
import type { ApiCall, Reply } from '../../reply.ts';
import type { BacktestResult } from '../../types.ts';
import { isComplete } from './dwellChanges.ts';
import { DwellPicture } from './dwellPicture.ts';

const EVENTS_SHOWN = 20;
const DAY_MS = 86_400_000;
/** What a draft can be tried on. A call takes at most 31 days. */
const SPANS = { week: { days: 7, text: 'seven days' }, month: { days: 30, text: '30 days' } } as const;
type Span = keyof typeof SPANS;

type Answer = Extract<Reply<readonly BacktestResult[]>, { ok: true }>;

interface Trial {
  readonly of: AreaBody;
  readonly span: Span;
  readonly atMs: number;
  /** A result for each minimum stay that was tried, the shortest first. */
  readonly draft: Answer;
  /** Null: a new area, or its replay was refused. */
  readonly saved: Answer | null;
}

/** What the draft would have brought in the last week or month. `check` rejects a draft that is not complete. */
export function AreaTrial({ sending, check }: { sending: Sending; check: () => boolean }): VNode {
  const [trial, setTrial] = useState<Trial | null>(null);
  const [running, setRunning] = useState<Span | null>(null);
  const [text, setText] = useState('0, 30, 60, 120, 300, 600');
  const draft = areaDraft.value;
  const run = async (span: Span): Promise<void> => {
    if (draft === null || running !== null || !check()) return;
    const { id, body } = draft;
    const dwells = dwellsIn(text, body.dwell_seconds);
    if (dwells === null) {
      sending.show([{ field: TRIED_FIELD, message: DWELLS_MESSAGE }]);
      return;
    }
    setRunning(span);
    setTrial(null);
    const atMs = Date.now();
    const ask = (asked: ApiCall) => sending.send<readonly BacktestResult[]>(() => call(asked));
    const tried = await ask(trialCall(body, dwells, span, atMs));
    const saved = tried === null || id === null ? null : await ask(trialCall(id, null, span, atMs));
    if (tried !== null) setTrial({ of: body, span, atMs, draft: tried, saved });
    setRunning(null);
  };
  const button = (span: Span): VNode =>
    html`<button type="button" onClick=${() => run(span)} aria-disabled=${running !== null}>Try on last ${span}</button>`;
  const present = trial === null || draft === null ? undefined : resultOf(trial, draft.body);
  return html`<div class="trial">
    <${Field} name=${TRIED_FIELD} label="Minimum stays to compare, in seconds" value=${text}
      onInput=${(event: InputEvent) => setText((event.currentTarget as HTMLInputElement).value)} />
    <p class="tools">${button('week')}${button('month')}</p>
    <div role="status">
      ${running !== null && html`<p>Replaying the points of last ${running}, which takes up to a minute…</p>`}
      ${trial !== null && present === undefined && html`<p>The draft has changed since. Try it again.</p>`}
      ${trial !== null && present !== undefined && html`<${Outcome} trial=${trial} tried=${present} />`}
    </div>
    ${trial !== null && present !== undefined && (trial.draft.meta.points ?? 0) > 0 && html`<${DwellPicture} key=${trial.atMs} results=${trial.draft.data} present=${present} />`}
    ${draft !== null && html`<${CallBehind} call=${trialCall(draft.body, dwellsIn(text, draft.body.dwell_seconds), trial?.span ?? 'week', trial?.atMs ?? Date.now())} />`}
  </div>`;
}

export const TRIED_FIELD = 'tried_seconds';
const DWELLS_MAX = 9;
const DWELL_MAX_SECONDS = 86_400;
const DWELLS_MESSAGE = `enter at most ${DWELLS_MAX} whole numbers from 0 to ${DWELL_MAX_SECONDS}, separated by commas`;

/** The minimum stays that a text names, and the present one, from short to long; null: the text is something else. */
export function dwellsIn(text: string, presentSeconds: number): readonly number[] | null {
  const words = wordsOf(text);
  const isRead = words.every((word) => /^\d+$/.test(word) && Number(word) <= DWELL_MAX_SECONDS);
  const named = new Set(words.map(Number));
  if (!isRead || named.size > DWELLS_MAX) return null;
  // What the form has is checked with the rest of the area.
  const isDwell = Number.isInteger(presentSeconds) && presentSeconds >= 0;
  return [...(isDwell ? named.add(presentSeconds) : named)].sort((a, b) => a - b);
}

/** What was found for the minimum stay of a draft; undefined: it was not tried, or the draft has another shape now. */
function resultOf({ of, draft }: Trial, now: AreaBody): BacktestResult | undefined {
  const isSame = (['type', 'center', 'radius_m', 'buffer_m', 'points'] as const).every(
    (field) => of[field] === now[field],
  );
  return isSame ? draft.data.find(({ dwell_seconds }) => dwell_seconds === now.dwell_seconds) : undefined;
}

function Outcome({ trial, tried }: { trial: Trial; tried: BacktestResult }): VNode {
  const saved = trial.saved?.data[0];
  const changes = saved && compareTrials(tried, saved);
  const { points = 0, notes = [], warnings = [] } = trial.draft.meta;
  return html`
    <p>${sumOf(tried)} in ${counted(points, 'point')} of the last ${SPANS[trial.span].text}.</p>
    ${saved && html`<p>As it is saved: ${sumOf(saved)}. ${changes ? `${counted(changes.same, 'event is', 'events are')} the same, ${changes.new} new, ${changes.gone} gone.` : 'They are too many to be compared one by one.'}</p>`}
    ${points === 0 && html`<p class="empty">Nothing was recorded in this time, so nothing can be said. Save it and watch the events.</p>`}
    <ul>${[...warnings, ...notes].map(({ message }) => html`<li><${Sentence} text=${message} /></li>`)}</ul>
    ${
      tried.events.length > 0 &&
      html`<details><summary>${`The first ${Math.min(EVENTS_SHOWN, tried.events.length)} events`}</summary><ol>${tried.events
        .slice(0, EVENTS_SHOWN)
        .map(
          ({ device, event, timestamp }) =>
            html`<li><${Time} at=${timestamp} /> ${nameOfImei(device)}: ${event}</li>`,
        )}</ol></details>`
    }`;
}

function sumOf({ entries, exits, devices }: BacktestResult): string {
  return `${counted(entries, 'entry', 'entries')} and ${counted(exits, 'exit')} of ${counted(devices, 'device')}`;
}

/** Replays the last days against a draft with these minimum stays (null: its own), or against the saved area of this id. */
function trialCall(
  tried: AreaBody | number,
  dwells: readonly number[] | null,
  span: Span,
  nowMs: number,
): ApiCall {
  const subject =
    typeof tried === 'number' ? { area_id: tried } : { area: { ...tried, name: tried.name || 'draft' } };
  const fromMs = nowMs - SPANS[span].days * DAY_MS;
  const window = { from: new Date(fromMs).toISOString(), to: new Date(nowMs).toISOString() };
  const body = { ...subject, ...window, ...(dwells === null ? {} : { dwell_seconds: dwells }) };
  return { method: 'POST', path: '/api/v1/areas/backtest', body };
}

/** Events of the draft that the saved area has, too, and those that only one of them has; null: not all are listed. */
function compareTrials(
  draft: BacktestResult,
  saved: BacktestResult,
): { readonly same: number; readonly new: number; readonly gone: number } | null {
  if (!isComplete(draft) || !isComplete(saved)) return null;
  const known = new Set(saved.events.map(eventKey));
  const same = draft.events.filter((event) => known.has(eventKey(event))).length;
  return { same, new: draft.events.length - same, gone: saved.events.length - same };
}

function eventKey({ device, event, timestamp }: BacktestResult['events'][number]): string {
  return `${device} ${event} ${timestamp}`;
}
