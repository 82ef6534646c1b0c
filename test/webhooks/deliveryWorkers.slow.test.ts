import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { HOUR_MS } from '../../src/lib/time.ts';
import { LocalDeliverySchedule, OUTBOX_ENTRY } from '../../src/redis/wakeUps.ts';
import {
  DeliverySlots,
  DeliveryWorkers,
  SLOT_LIMITS,
  type SlotLimits,
} from '../../src/webhooks/delivery/deliveryWorkers.ts';
import type { SendResult, WebhookRequest } from '../../src/webhooks/delivery/sendWebhook.ts';
import { holdTransaction } from '../support/postgres/holdTransaction.ts';
import { waitFor } from '../support/waitFor.ts';
import {
  ANSWERED,
  type DeliveryDatabase,
  startDeliveryDatabase,
} from '../support/webhooks/deliveryDatabase.ts';

const WAITING = { waiting: 1_000, waitingPerKey: 1_000 };

function startWorkers(
  t: TestContext,
  database: DeliveryDatabase,
  send: (request: WebhookRequest) => Promise<SendResult>,
  limits: SlotLimits = SLOT_LIMITS,
) {
  const warnings: string[] = [];
  const sweeps: { waiting: number }[] = [];
  const filled: string[] = [];
  const schedule = new LocalDeliverySchedule();
  const slots = new DeliverySlots(limits);
  const workers = new DeliveryWorkers({
    ...database.ports(send),
    slots,
    schedule,
    log: { info: () => undefined, warn: (_, message) => void warnings.push(message) },
    onSweep: (backlog) => void sweeps.push(backlog),
    onOutboxFilled: () => void filled.push('filled'),
  });
  workers.start();
  t.after(() => workers.stop());
  return { workers, schedule, places: slots, warnings, sweeps, filled };
}

const isDone = async ({ sql }: DeliveryDatabase): Promise<boolean> =>
  (await sql`select from webhook_delivery where status <> 'delivered'`).length === 0;

describe('the delivery workers of a pod', () => {
  test('a start finds what waits; an account has its share of places and no more, each endpoint once', async (t) => {
    const database = await startDeliveryDatabase(t);
    const share = SLOT_LIMITS.byPace.new.runningPerKey;
    const ids = Array.from({ length: share + 6 }, async () => database.queue(await database.endpoint(), 2));
    await Promise.all(ids);
    const inFlight = new Set<string>();
    let most = 0;
    const latch = Promise.withResolvers<void>();
    const limits = { ...SLOT_LIMITS, slowAfterMs: HOUR_MS };
    const send = async ({ headers }: WebhookRequest) => {
      const endpoint = headers['Idempotency-Key']?.split(':')[0] ?? '';
      assert.ok(!inFlight.has(endpoint));
      inFlight.add(endpoint);
      most = Math.max(most, inFlight.size);
      await latch.promise;
      inFlight.delete(endpoint);
      return ANSWERED;
    };
    const { sweeps } = startWorkers(t, database, send, limits);
    await waitFor(() => inFlight.size === share);
    assert.equal(most, share);
    latch.resolve();
    await waitFor(() => isDone(database));
    assert.equal(sweeps[0]?.waiting, 2 * (share + 6));
  });

  test('thirty endpoints of three owners that hang keep no delivery of a fourth waiting, at first and ever after', async (t) => {
    const database = await startDeliveryDatabase(t);
    const hostile = new Set<string>();
    for (const email of ['b@x', 'c@x', 'd@x']) {
      const ownerId = await database.account(email);
      for (let n = 0; n < 10; n++) {
        const id = await database.endpoint({}, ownerId);
        hostile.add(String(id));
        await database.queue(id, 50);
      }
    }
    const victim = await database.endpoint();
    await database.queue(victim);
    const hanging = new Set<() => void>();
    let mostLater = 0;
    let isLater = false;
    const send = async ({ headers }: WebhookRequest): Promise<SendResult> => {
      if (!hostile.has(headers['Idempotency-Key']?.split(':')[0] ?? '')) return ANSWERED;
      const { promise, resolve } = Promise.withResolvers<void>();
      hanging.add(resolve);
      if (isLater) mostLater = Math.max(mostLater, hanging.size);
      await promise;
      hanging.delete(resolve);
      return { kind: 'failed', error: 'timeout', durationMs: 10_000 };
    };
    const { workers, schedule, places } = startWorkers(t, database, send, {
      byPace: {
        quick: { running: 6, runningPerKey: 4, ...WAITING },
        new: { running: 6, runningPerKey: 2, ...WAITING },
        slow: { running: 4, runningPerKey: 2, ...WAITING },
      },
      slowAfterMs: 20,
    });
    const delivered = async (count: number) =>
      (await database.sql`select from webhook_delivery where webhook_id = ${victim} and status = 'delivered'`)
        .length === count;
    // Each hostile one is tried once, and gives its place away while it hangs; the fourth owner's is there meanwhile.
    await waitFor(() => delivered(1));
    await waitFor(() => hanging.size === hostile.size && places.size === 0);
    isLater = true;
    for (const end of hanging) end();
    await waitFor(() => mostLater > 0);
    for (let n = 2; n <= 5; n++) {
      await database.queue(victim);
      await schedule.add(victim, 0);
      await waitFor(() => delivered(n));
    }
    assert.equal(hanging.size, 4, 'those that are known to hang have the places of slow ones');
    assert.equal(mostLater, 4);
    const stopped = workers.stop();
    await waitFor(() => {
      for (const end of hanging) end();
      return hanging.size === 0;
    });
    await stopped;
  });

  test('a turn that fails is tried again, and the others go on', async (t) => {
    const database = await startDeliveryDatabase(t);
    const [bad, good] = [await database.endpoint(), await database.endpoint()];
    await database.queue(bad);
    await database.queue(good);
    let failures = 0;
    const { warnings } = startWorkers(t, database, async ({ headers }) => {
      if (headers['Idempotency-Key']?.startsWith(`${bad}:`) && failures++ === 0) throw new Error('planted');
      return ANSWERED;
    });
    const interrupted = () => database.sql`select from webhook_delivery where last_error = 'interrupted'`;
    await waitFor(async () => (await interrupted()).length === 1);
    await waitFor(
      async () => (await database.sql`select from webhook_delivery where status = 'delivered'`).length === 1,
    );
    assert.deepEqual(warnings, ['delivering to an endpoint failed; trying again']);
  });

  test('a stop waits for the attempt in flight, writes its result, gives the lease back, and begins no other', async (t) => {
    const database = await startDeliveryDatabase(t);
    await database.queue(await database.endpoint(), 3);
    let sent = 0;
    const latch = Promise.withResolvers<void>();
    const { workers } = startWorkers(t, database, async () => {
      sent++;
      await latch.promise;
      return ANSWERED;
    });
    await waitFor(() => sent === 1);
    const stopped = workers.stop();
    latch.resolve();
    await stopped;
    assert.equal(sent, 1);
    const rows = await database.sql`select status from webhook_delivery where status = 'delivered'`;
    assert.equal(rows.length, 1);
    assert.equal((await database.sql`select from webhook where leased_until is not null`).length, 0);
  });

  test('attempts end without a sweep that Postgres does not answer; a stop waits for it', async (t) => {
    const database = await startDeliveryDatabase(t);
    const release = await holdTransaction(
      database.sql,
      (tx) => tx`lock table webhook_delivery in access exclusive mode`,
    );
    const { workers, sweeps } = startWorkers(t, database, async () => ANSWERED);
    await workers.endAttempts();
    assert.deepEqual(sweeps, []);
    const stopped = workers.stop();
    await release();
    await stopped;
    assert.equal(sweeps.length, 1);
  });

  test('the outbox stands in the schedule too: whoever takes it from there is called, and no endpoint is held up', async (t) => {
    const database = await startDeliveryDatabase(t);
    const { workers, schedule, filled } = startWorkers(t, database, async () => ANSWERED);
    await database.queue(await database.endpoint());
    await schedule.addAll([OUTBOX_ENTRY, 1].map((webhookId) => ({ webhookId, dueInMs: 0 })));
    workers.poke();
    await waitFor(() => filled.length === 1);
    await waitFor(() => isDone(database));
  });
});
