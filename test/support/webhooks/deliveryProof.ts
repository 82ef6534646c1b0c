import assert from 'node:assert/strict';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Sql } from '../../../src/postgres/sql.ts';
import { UNSURE_ATTEMPTS_MAX } from '../../../src/webhooks/delivery.ts';
import type { Received, Receiver } from './receiver.ts';

/** An endpoint as a test made it: where its receiver is, and how many attempts a delivery of it gets. */
export interface ProvenEndpoint {
  readonly path: string;
  readonly budget: number;
}

/** Lets Postgres itself write down every change of a delivery, whoever makes it. */
export async function auditDeliveries(sql: Sql): Promise<void> {
  await sql.unsafe(`
    create table delivery_audit (
      n bigint generated always as identity, id text, before jsonb, after jsonb, is_constant boolean);
    create function audit_delivery() returns trigger language plpgsql as $$ begin
      insert into delivery_audit (id, before, after, is_constant) values (
        old.id, to_jsonb(old) - 'body', to_jsonb(new) - 'body',
        (old.id, old.webhook_id, old.account_id, old.event_id, old.event_type, old.body, old.created_at)
          is not distinct from
        (new.id, new.webhook_id, new.account_id, new.event_id, new.event_type, new.body, new.created_at));
      return new;
    end $$;
    create trigger audit after update on webhook_delivery for each row execute function audit_delivery()`);
}

interface Audited {
  readonly status: string;
  readonly attempts: number;
  readonly spent: number;
  readonly attempt_token: number | null;
}

/**
 * Every change that was made is one of three: an attempt is counted, an attempt ends, a replay; each goes only from
 * and to where the state table of the API document lets it, and nothing else ever changes.
 */
export async function proveAudit(sql: Sql): Promise<void> {
  const changes = await sql<{ id: string; before: Audited; after: Audited; is_constant: boolean }[]>`
    select id, before, after, is_constant from delivery_audit order by n`;
  assert.ok(changes.length > 0, 'something was audited');
  for (const { id, before, after, is_constant } of changes) {
    const change = `${id}: ${JSON.stringify({ before, after })}`;
    assert.ok(is_constant, `what was queued stays as it is: ${change}`);
    assert.ok(kindOf(before, after) !== null, `a change outside the table: ${change}`);
  }
}

const ATTEMPTED = ['pending', 'failed', 'requeued'];
const ENDS = ['delivered', 'failed', 'exhausted'];

function kindOf(before: Audited, after: Audited): 'start' | 'end' | 'replay' | 'wait' | null {
  const attempts = after.attempts - before.attempts;
  const spent = after.spent - before.spent;
  const isSameStatus = before.status === after.status;
  // Tests themselves move the time of the next attempt.
  if (isSameStatus && attempts === 0 && spent === 0 && before.attempt_token === after.attempt_token)
    return 'wait';
  if (before.attempt_token === null && after.attempt_token !== null) {
    return isSameStatus && attempts === 1 && spent === 1 && ATTEMPTED.includes(before.status)
      ? 'start'
      : null;
  }
  if (before.attempt_token !== null) {
    const isEnd = ATTEMPTED.includes(before.status) && ENDS.includes(after.status);
    return isEnd && after.attempt_token === null && attempts === 0 && spent === 0 ? 'end' : null;
  }
  const isReplay = ['failed', 'exhausted'].includes(before.status) && after.status === 'requeued';
  return isReplay && attempts === 0 && after.spent === 0 ? 'replay' : null;
}

/** Waits until nothing is open any more, for as long as it gets less now and then. */
export async function drained(sql: Sql, stuckMs: number): Promise<void> {
  let fewest = Number.POSITIVE_INFINITY;
  for (let sinceMs = Date.now(); fewest > 0; await sleep(50)) {
    const open = await sql<{ id: string }[]>`
      select d.id, d.webhook_id, d.status, d.attempts, d.next_attempt_at, d.attempt_token, w.leased_until,
        w.fencing_token, w.active
      from webhook_delivery d join webhook w on w.id = d.webhook_id
      where d.status not in ('delivered', 'exhausted')`;
    if (open.length < fewest) sinceMs = Date.now();
    fewest = Math.min(fewest, open.length);
    const stuck = () => `${open.length} deliveries are stuck: ${JSON.stringify(open.slice(0, 5))}`;
    assert.ok(Date.now() - sinceMs < stuckMs, stuck());
  }
}

interface StoredDelivery {
  readonly id: string;
  readonly webhook_id: number;
  readonly event_id: string;
  readonly body: string;
  readonly status: string;
  readonly attempts: number;
  readonly spent: number;
  readonly last_status_code: number | null;
}

/**
 * Of every endpoint: it has one delivery of each of the last `events` events, each delivered or a dead letter, sent one
 * at a time, under numbers that rise, with the same bytes and ids every time.
 */
export async function proveDeliveries(
  sql: Sql,
  receiver: Receiver,
  endpoints: readonly ProvenEndpoint[],
  events: readonly number[],
): Promise<void> {
  for (const { path, budget } of endpoints) {
    const deliveries = await sql<StoredDelivery[]>`
      select d.* from webhook_delivery d join webhook w on w.id = d.webhook_id
      where w.url like ${`%${path}`} order by (d.body::jsonb->'data'->>'fleet_event_id')::bigint`;
    const eventIds = deliveries.map(({ body }) => JSON.parse(body).data.fleet_event_id);
    assert.deepEqual(eventIds, events, `${path} has one delivery of each event`);
    const overlaps = receiver.overlaps.join('\n');
    assert.ok(receiver.maxInFlight(path) <= 1, `${path} is never asked twice at once:\n${overlaps}`);
    const received = Map.groupBy(receiver.to(path), ({ headers }) => headers['x-service-delivery-id'] ?? '');
    for (const delivery of deliveries) proveDelivery(delivery, received.get(delivery.id) ?? [], budget);
  }
}

function proveDelivery(delivery: StoredDelivery, requests: readonly Received[], budget: number): void {
  const { attempts, status } = delivery;
  const numbers = requests.map(({ headers }) => Number(headers['x-service-delivery-attempt']));
  assert.deepEqual(
    numbers,
    numbers.toSorted((a, b) => a - b),
    `numbers rise: ${numbers}`,
  );
  // An attempt is sent a second time when the receiver closes a kept connection under it.
  for (const number of numbers) assert.ok(numbers.filter((each) => each === number).length <= 2);
  assert.ok(numbers.every((number) => number >= 1 && number <= attempts));
  for (const { body, headers } of requests) {
    assert.equal(body, delivery.body, 'the bytes stay');
    assert.equal(headers['webhook-id'], delivery.event_id);
    assert.equal(headers['idempotency-key'], `${delivery.webhook_id}:${delivery.event_id}`);
  }
  assert.equal(delivery.spent, attempts);
  if (status === 'delivered') {
    assert.equal(delivery.last_status_code, 200);
    assert.equal(numbers.at(-1), attempts, 'it was the last attempt that arrived');
  } else {
    assert.equal(status, 'exhausted');
    assert.ok(attempts >= budget, 'a dead letter has used up its budget');
    assert.equal(numbers.at(-1), attempts, 'a dead letter was sent');
  }
  assert.ok(attempts <= budget + UNSURE_ATTEMPTS_MAX);
}
