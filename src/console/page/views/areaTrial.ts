import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { counted } from '../amounts.ts';
import type { Reply } from '../api.ts';
import { call } from '../api.ts';
import { type AreaBody, areaDraft } from '../areaDraft.ts';
import type { Sending } from '../forms/sending.ts';
import { html } from '../html.ts';
import { nameOfImei } from '../liveFleet.ts';
import { compareTrials, savedTrialCall, trialCall } from '../trial.ts';
import type { Backtest } from '../types.ts';
import { Curl, Time } from '../parts.ts';

const EVENTS_SHOWN = 20;

type Answer = Extract<Reply<readonly Backtest[]>, { ok: true }>;

interface Trial {
  readonly of: AreaBody;
  readonly atMs: number;
  readonly draft: Answer;
  /** Null: a new area. */
  readonly saved: Answer | null;
}

/** What the draft would have brought in the last week. `check` rejects a draft that is not complete. */
export function AreaTrial({ sending, check }: { sending: Sending; check: () => boolean }): VNode {
  const [trial, setTrial] = useState<Trial | null>(null);
  const [isRunning, setRunning] = useState(false);
  const draft = areaDraft.value;
  const run = async (): Promise<void> => {
    if (draft === null || isRunning || !check()) return;
    setRunning(true);
    setTrial(null);
    const atMs = Date.now();
    const tried = await sending.send<readonly Backtest[]>(() => call(trialCall(draft, atMs)));
    const { id } = draft;
    const saved =
      tried === null || id === null
        ? null
        : await sending.send<readonly Backtest[]>(() => call(savedTrialCall(id, atMs)));
    if (tried !== null && (id === null || saved !== null))
      setTrial({ of: draft.body, atMs, draft: tried, saved });
    setRunning(false);
  };
  return html`<div class="trial">
    <button type="button" onClick=${run} aria-disabled=${isRunning}>Try on last week</button>
    <div role="status">
      ${isRunning && html`<p>Replaying the points of last week…</p>`}
      ${trial !== null && trial.of !== draft?.body && html`<p>The draft has changed since. Try it again.</p>`}
      ${trial !== null && trial.of === draft?.body && html`<${Outcome} trial=${trial} />`}
    </div>
    ${draft !== null && html`<${Curl} call=${trialCall(draft, trial?.atMs ?? Date.now())} />`}
  </div>`;
}

function Outcome({ trial }: { trial: Trial }): VNode {
  const tried = trial.draft.data[0] as Backtest;
  const saved = trial.saved?.data[0];
  const changes = saved && compareTrials(tried, saved);
  const { points = 0, notes = [], warnings = [] } = trial.draft.meta;
  return html`
    <p>${sumOf(tried)} in ${counted(points, 'point')} of the last seven days.</p>
    ${saved && html`<p>As it is saved: ${sumOf(saved)}. ${changes ? `${counted(changes.same, 'event is', 'events are')} the same, ${changes.new} new, ${changes.gone} gone.` : 'They are too many to be compared one by one.'}</p>`}
    ${points === 0 && html`<p class="empty">Nothing was recorded last week, so nothing can be said. Save it and watch the events.</p>`}
    <ul>${[...warnings, ...notes].map(({ message }) => html`<li>${message}</li>`)}</ul>
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

function sumOf({ entries, exits, devices }: Backtest): string {
  return `${counted(entries, 'entry', 'entries')} and ${counted(exits, 'exit')} of ${counted(devices, 'device')}`;
}
