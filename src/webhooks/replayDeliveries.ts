import { isJsonObject, isMissing } from '../lib/parseText.ts';
import { BODY_INVALID, type FieldError, fail, ok, type Result } from '../lib/result.ts';
import { parseIsoMs } from '../lib/time.ts';
import type { Sql } from '../postgres/sql.ts';
import type { Delivery, ReplayCursor, ReplayRequest, RequeuedChunk } from './deliveries.sql.ts';
import { REPLAYABLE, requeueChunk, requeueDelivery } from './deliveries.sql.ts';
import { insertDeliveries } from './delivery/claims.sql.ts';
import { newEventId, pingBody } from './delivery.ts';
import { selectWebhook } from './webhooks.sql.ts';

/** Wakes the delivery workers of these endpoints. */
export type Wake = (webhookIds: readonly number[]) => void;

/**
 * Queues an ordinary delivery of type ping to this endpoint only, also while it is inactive. Undefined when the account
 * has no such endpoint.
 */
export async function requestPing(
  sql: Sql,
  wake: Wake,
  accountId: number,
  webhookId: number,
  nowMs: number,
): Promise<Delivery | undefined> {
  if ((await selectWebhook(sql, accountId, webhookId)) === undefined) return undefined;
  const eventId = newEventId();
  const ping = { webhookId, eventId, eventType: 'ping', body: pingBody(eventId, webhookId, nowMs) } as const;
  const [delivery] = await sql.begin((tx) => insertDeliveries(tx, [ping], 'test'));
  if (delivery !== undefined) wake([webhookId]);
  return delivery;
}

/** Queues a failed or exhausted delivery once more, with all of its retries; see requeueDelivery. */
export async function replayDelivery(
  sql: Sql,
  wake: Wake,
  accountId: number,
  deliveryId: string,
): Promise<Delivery | 'not_replayable' | undefined> {
  const outcome = await requeueDelivery(sql, accountId, deliveryId);
  if (typeof outcome === 'object') wake([outcome.webhook_id]);
  return outcome;
}

/**
 * Queues everything once more that single replays would take, oldest first, a chunk in a transaction: deliveries are sent
 * from the first chunk on, and what is queued stays queued when this is cut off. Returns how many; undefined when the
 * account has no such endpoint.
 */
export async function replayDeliveries(
  sql: Sql,
  wake: Wake,
  accountId: number,
  webhookId: number,
  request: ReplayRequest,
): Promise<number | undefined> {
  if ((await selectWebhook(sql, accountId, webhookId)) === undefined) return undefined;
  let count = 0;
  let after: ReplayCursor | null = null;
  do {
    const { requeued, next }: RequeuedChunk = await requeueChunk(sql, webhookId, request, after);
    if (requeued > 0) wake([webhookId]);
    count += requeued;
    after = next;
  } while (after !== null);
  return count;
}

export const REPLAY_ERRORS = {
  bodyInvalid: BODY_INVALID,
  statusInvalid: {
    field: 'status',
    code: 'INVALID',
    message: `status must be a list of ${REPLAYABLE.join(', ')}, at least one`,
  },
  fromInvalid: { field: 'from', code: 'INVALID', message: 'from must be an ISO 8601 time' },
  toInvalid: { field: 'to', code: 'INVALID', message: 'to must be an ISO 8601 time' },
} as const satisfies Readonly<Record<string, FieldError>>;

/** The body of a bulk replay, or every invalid field of it. */
export function parseReplayRequest(body: unknown): Result<ReplayRequest, FieldError[]> {
  if (!isJsonObject(body)) return fail([REPLAY_ERRORS.bodyInvalid]);
  const { status, from, to } = body;
  const errors: FieldError[] = [];
  const statuses = Array.isArray(status) ? REPLAYABLE.filter((each) => status.includes(each)) : [];
  const isKnown = Array.isArray(status) && status.every((each) => REPLAYABLE.includes(each));
  if (statuses.length === 0 || !isKnown) errors.push(REPLAY_ERRORS.statusInvalid);
  const fromMs = timeOf(from);
  const toMs = timeOf(to);
  if (fromMs === 'invalid') errors.push(REPLAY_ERRORS.fromInvalid);
  if (toMs === 'invalid') errors.push(REPLAY_ERRORS.toInvalid);
  if (errors.length > 0 || fromMs === 'invalid' || toMs === 'invalid') return fail(errors);
  return ok({ statuses, fromMs, toMs });
}

/** The body that ends a pause: from when on deliveries that were left out are made; null: from the first. */
export function parseResumeRequest(body: unknown): Result<{ fromMs: number | null }, FieldError[]> {
  if (!isJsonObject(body)) return fail([REPLAY_ERRORS.bodyInvalid]);
  const fromMs = timeOf(body['from']);
  return fromMs === 'invalid' ? fail([REPLAY_ERRORS.fromInvalid]) : ok({ fromMs });
}

function timeOf(value: unknown): number | null | 'invalid' {
  if (isMissing(value)) return null;
  return (typeof value === 'string' ? parseIsoMs(value) : null) ?? 'invalid';
}
