import type { VNode } from 'preact';
import { useLoaded } from '../api.ts';
import { Time } from '../format.ts';
import { CallBehind, counted, duration, html } from '../parts.ts';
import type { DeliveryAttempt, DeliveryDetail } from '../types.ts';

/** What was sent with a delivery, and what came back at each attempt; asked for again with each `round`. */
export function SentDelivery(props: { webhookId: number; deliveryId: string; round: number }): VNode {
  const { webhookId, deliveryId, round } = props;
  const path = `/api/v1/webhooks/${webhookId}/deliveries/${deliveryId}`;
  const { reply, reload } = useLoaded<DeliveryDetail>(path, round);
  if (reply === null) return html`<p class="loading" aria-live="polite">Loading…</p>`;
  if (!reply.ok)
    return html`<p class="error" role="alert">${reply.message} <button type="button" onClick=${reload}>Try again</button></p>`;
  const { id, event_id, delivered_at, attempts, attempt_log, in_flight, payload } = reply.data;
  const unknown = attempts - attempt_log.length - (in_flight ? 1 : 0);
  return html`
    <dl class="facts">
      <dt>Delivery</dt><dd><code>${id}</code></dd>
      <dt>Event</dt><dd><code>${event_id}</code></dd>
      ${delivered_at !== null && html`<dt>Delivered</dt><dd><${Time} at=${delivered_at} /></dd>`}
    </dl>
    <h4>Attempts</h4>
    ${attempts === 0 && html`<p class="empty">None yet.</p>`}
    <ol class="attempts" aria-label="Attempts, the last one first">
      ${in_flight && html`<li><strong>${attempts}</strong> is being made now</li>`}
      ${attempt_log.toReversed().map((attempt) => html`<${Attempt} key=${attempt.attempt} attempt=${attempt} />`)}
    </ol>
    ${unknown > 0 && html`<p class="empty">Of ${counted(unknown, 'earlier attempt')} nothing is kept.</p>`}
    <h4>Payload</h4>
    <pre tabindex="0" aria-label="Payload">${indented(payload)}</pre>
    <${CallBehind} call=${{ method: 'GET', path }} />`;
}

function Attempt({
  attempt: { attempt, at, status_code, error, duration_ms, answer },
}: {
  attempt: DeliveryAttempt;
}): VNode {
  const took =
    duration_ms !== null && duration_ms >= 1_000 ? duration(duration_ms / 1_000) : `${duration_ms} ms`;
  return html`<li>
    <strong>${attempt}</strong> <span class=${`status ${error === null ? 'delivered' : 'failed'}`}>${error === null ? 'delivered' : 'failed'}</span>
    ${outcomeOf(status_code, error)}
    <small>${at !== null && html`<${Time} at=${at} />`}${duration_ms !== null && `, took ${took}`}</small>
    ${answer === '' && html`<small>The answer had no body.</small>`}
    ${answer !== null && answer !== '' && html`<pre tabindex="0" aria-label=${`The answer to attempt ${attempt}`}>${answer}</pre>`}
  </li>`;
}

/** What came of an attempt, for people; null where nothing is known. */
export function outcomeOf(statusCode: number | null, error: string | null): string | null {
  if (error === 'url_unsafe') return 'the address of the URL is not a public one';
  if (error === 'interrupted') return 'broken off by the service, which tries again';
  if (statusCode !== null) return `the receiver answered ${statusCode}`;
  return error?.replaceAll('_', ' ') ?? null;
}

/** JSON, to be read by people; other text as it is. */
function indented(text: string): string {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}
