import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { call, mayChange, useLoaded } from '../api.ts';
import { Ago, Due, isoOfField, Time } from '../format.ts';
import { Field, Form, Panel, useSending } from '../forms.ts';
import { CallBehind, counted, html, List } from '../parts.ts';
import type { ApiCall } from '../reply.ts';
import type { Delivery, Webhook } from '../types.ts';
import { outcomeOf, SentDelivery } from './sentDelivery.ts';

const STATUSES = ['pending', 'delivered', 'failed', 'exhausted', 'requeued'] as const;
const REPLAYED = ['failed', 'exhausted'];
const PAGE = 20;
/** The most that a call lists. */
const LISTED_MAX = 200;

/**
 * The deliveries of a webhook: what waits, and each of them with what came of it; asked for again with each `round`.
 * `asked` is called when a person asks for them again.
 */
export function Deliveries({
  webhook,
  round,
  asked,
  close,
}: {
  webhook: Webhook;
  round: number;
  asked: () => void;
  close: () => void;
}): VNode {
  const [status, setStatus] = useState('');
  const [offset, setOffset] = useState(0);
  const [said, setSaid] = useState('');
  const [refreshes, setRefreshes] = useState(0);
  const path = `${pathOf(webhook)}?${status === '' ? '' : `status=${status}&`}limit=${PAGE}&offset=${offset}`;
  const { reply, reload } = useLoaded<readonly Delivery[]>(path, round + refreshes);
  const refresh = (): void => {
    setRefreshes((before) => before + 1);
    asked();
  };
  const replay = async (id: string): Promise<void> => {
    const answer = await call({ method: 'POST', path: `/api/v1/webhooks/deliveries/${id}/replay` });
    setSaid(answer.ok ? 'It is sent again.' : answer.message);
    refresh();
  };
  const replayed = (count: number): void => {
    setSaid(`${counted(count, 'delivery is', 'deliveries are')} sent again.`);
    refresh();
  };
  const empty =
    status === '' && offset === 0
      ? `Nothing was sent yet. ${mayChange() ? 'Send a test, or wait' : 'Wait'} for an event.`
      : 'No delivery is like this. Choose another status, or go back.';
  return html`<${Panel} label=${`Deliveries to ${webhook.url}`} close=${close}>
    <${Waiting} webhook=${webhook} round=${round + refreshes} />
    <div class="filters">
      <label>Status
        <select value=${status} onChange=${(event: Event) => {
          setStatus((event.currentTarget as HTMLSelectElement).value);
          setOffset(0);
        }}><option value="">Any</option>${STATUSES.map((name) => html`<option value=${name}>${name}</option>`)}</select>
      </label>
      <button type="button" onClick=${refresh}>Refresh</button>
    </div>
    <p role="status">${said}</p>
    <${List} reply=${reply} reload=${reload} empty=${empty}
      show=${(all: readonly Delivery[]) =>
        html`<ul class="rows deliveries">${all.map((delivery) => html`<${Row} key=${delivery.id} webhookId=${webhook.id} delivery=${delivery} round=${round + refreshes} replay=${replay} />`)}</ul>`} />
    <p class="tools">
      ${offset > 0 && html`<button type="button" onClick=${() => setOffset(offset - PAGE)}>Later</button>`}
      ${reply?.ok && reply.data.length === PAGE && html`<button type="button" onClick=${() => setOffset(offset + PAGE)}>Earlier</button>`}
    </p>
    <${CallBehind} call=${{ method: 'GET', path }} />
    ${mayChange() && html`<${ReplayAll} webhookId=${webhook.id} done=${replayed} />`}
  <//>`;
}

function pathOf({ id }: Webhook): string {
  return `/api/v1/webhooks/${id}/deliveries`;
}

function Row(props: {
  webhookId: number;
  delivery: Delivery;
  round: number;
  replay: (id: string) => Promise<void>;
}): VNode {
  const { webhookId, delivery, round, replay } = props;
  const [isOpen, setOpen] = useState(false);
  const { id, event_type, status, created_at, next_attempt_at } = delivery;
  return html`<li>
    <div>
      <${Time} at=${created_at} /> ${event_type} <span class=${`status ${status}`}>${status}</span>
      <small>${reasonOf(delivery)}${next_attempt_at !== null && html`; next try <${Due} at=${next_attempt_at} />`}</small>
    </div>
    ${
      REPLAYED.includes(status) &&
      mayChange() &&
      html`<button type="button" aria-label=${`Replay ${event_type} of ${created_at}`} onClick=${() => replay(id)}>Replay</button>`
    }
    <details onToggle=${(event: Event) => setOpen((event.currentTarget as HTMLDetailsElement).open)}>
      <summary>Payload and attempts</summary>
      ${isOpen && html`<${SentDelivery} webhookId=${webhookId} deliveryId=${id} round=${round} />`}
    </details>
  </li>`;
}

/** What came of the attempts, for people. */
export function reasonOf({ attempts, last_status_code, last_error }: Delivery): string {
  const tries = counted(attempts, 'attempt');
  if (attempts === 0) return 'not sent yet';
  const outcome = outcomeOf(last_status_code, last_error);
  return outcome === null ? tries : `${tries}: ${outcome}`;
}

/** What waits to be sent to an endpoint. */
interface Queue {
  readonly waiting: number;
  /** Those that were tried, and failed. */
  readonly failing: number;
  /** More wait than were listed, so the oldest may be older. */
  readonly isMore: boolean;
  /** When the oldest was made, and when the next one is tried (ISO 8601); null: none waits. */
  readonly oldestAt: string | null;
  readonly nextAt: string | null;
}

/** Of the newest deliveries of each waiting status, `max` of each at most. */
export function queueOf(lists: readonly (readonly Delivery[])[], max: number): Queue {
  const all = lists.flat();
  const tries = all.map(({ next_attempt_at }) => next_attempt_at).filter((at) => at !== null);
  return {
    waiting: all.length,
    failing: all.filter(({ status }) => status === 'failed').length,
    isMore: lists.some((list) => list.length >= max),
    oldestAt: earliest(all.map(({ created_at }) => created_at)),
    nextAt: earliest(tries),
  };
}

function earliest(times: readonly string[]): string | null {
  return times.toSorted()[0] ?? null;
}

/** How many deliveries wait, since when, and when the next is tried; and whether some were given up. */
function Waiting({ webhook, round }: { webhook: Webhook; round: number }): VNode {
  const path = (status: string, limit: number): string =>
    `${pathOf(webhook)}?status=${status}&limit=${limit}`;
  const replies = [
    useLoaded<readonly Delivery[]>(path('pending', LISTED_MAX), round).reply,
    useLoaded<readonly Delivery[]>(path('failed', LISTED_MAX), round).reply,
    useLoaded<readonly Delivery[]>(path('requeued', LISTED_MAX), round).reply,
  ];
  const givenUp = useLoaded<readonly Delivery[]>(path('exhausted', 1), round).reply;
  const refused = [...replies, givenUp].find((reply) => reply !== null && !reply.ok);
  if (refused !== undefined && refused !== null && !refused.ok)
    return html`<p class="error" role="alert">${refused.message}</p>`;
  const lists = replies.map((reply) => (reply?.ok ? reply.data : null)).filter((list) => list !== null);
  if (lists.length < replies.length || givenUp === null)
    return html`<p role="status">Counting what waits…</p>`;
  const { waiting, failing, isMore, oldestAt, nextAt } = queueOf(lists, LISTED_MAX);
  const lastGivenUp = givenUp.ok ? givenUp.data[0] : undefined;
  const facts = [
    ['Waiting', `${waiting}${isMore ? ' or more' : ''}`],
    ['Failed at least once', `${failing}${failing >= LISTED_MAX ? ' or more' : ''}`],
    ['The oldest', oldestAt === null ? '–' : html`<${Ago} at=${oldestAt} />${isMore ? ', or earlier' : ''}`],
    ['Next try', nextAt === null ? '–' : html`<${Due} at=${nextAt} />`],
    ['Last given up', lastGivenUp === undefined ? 'never' : html`<${Ago} at=${lastGivenUp.created_at} />`],
  ];
  return html`<dl class="sums">${facts.map(([what, value]) => html`<div><dt>${what}</dt><dd>${value}</dd></div>`)}</dl>`;
}

function ReplayAll({ webhookId, done }: { webhookId: number; done: (count: number) => void }): VNode {
  const [since, setSince] = useState('');
  const sending = useSending();
  const replay = replayCall(webhookId, since);
  const submit = async (): Promise<void> => {
    const answer = await sending.send<{ requeued: number }>(() => call(replay));
    if (answer !== null) done(answer.data.requeued);
  };
  return html`<${Form} label="Replay" fields=${['from']} sending=${sending} submit=${submit}>
    <${Field} name="from" label="Made since (empty: ever)" type="datetime-local" value=${since}
      onInput=${(event: InputEvent) => setSince((event.currentTarget as HTMLInputElement).value)} />
    <button>Replay all that failed</button>
    <${CallBehind} call=${replay} />
  <//>`;
}

/** `since` as a field for date and time gives it, in the chosen zone. */
function replayCall(webhookId: number, since: string): ApiCall {
  const body = { status: REPLAYED, ...(since === '' ? {} : { from: isoOfField(since) ?? since }) };
  return { method: 'POST', path: `/api/v1/webhooks/${webhookId}/replay`, body };
}
