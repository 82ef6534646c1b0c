import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { DeliveryWorkers } from '../../src/flows/deliveryWorkers.ts';
import { LANE_LIMITS, type LaneLimits, LanePlaces } from '../../src/flows/lanePlaces.ts';
import type { SendResult, WebhookRequest } from '../../src/net/sendWebhook.ts';
import { LocalDeliverySchedule, OUTBOX_LANE } from '../../src/queue/deliverySchedule.ts';
import { ANSWERED, type QueuedLanes, startLanes } from '../support/queuedLanes.ts';
import { waitFor } from '../support/waitFor.ts';

const HOUR_MS = 3_600_000;
const WAITING = { waiting: 1_000, waitingPerKey: 1_000 };

function startWorkers(
  t: TestContext,
  lanes: QueuedLanes,
  send: (request: WebhookRequest) => Promise<SendResult>,
  limits: LaneLimits = LANE_LIMITS,
) {
  const warnings: string[] = [];
  const sweeps: { waiting: number }[] = [];
  const filled: string[] = [];
  const schedule = new LocalDeliverySchedule();
  const places = new LanePlaces(limits);
  const workers = new DeliveryWorkers({
    ...lanes.ports(send),
    places,
    schedule,
    log: { info: () => undefined, warn: (_, message) => void warnings.push(message) },
    onSweep: (backlog) => void sweeps.push(backlog),
    onOutboxFilled: () => void filled.push('filled'),
  });
  workers.start();
  t.after(() => workers.stop());
  return { workers, schedule, places, warnings, sweeps, filled };
}

const isDone = async ({ sql }: QueuedLanes): Promise<boolean> =>
  (await sql`select from webhook_delivery where status <> 'delivered'`).length === 0;

describe('the lanes of a pod', () => {
  test('a start finds what waits; an account has its share of places and no more, each endpoint once', async (t) => {
    const lanes = await startLanes(t);
    const share = LANE_LIMITS.places.new.runningPerKey;
    const ids = Array.from({ length: share + 6 }, async () => lanes.queue(await lanes.endpoint(), 2));
    await Promise.all(ids);
    const inFlight = new Set<string>();
    let most = 0;
    const gate = Promise.withResolvers<void>();
    const limits = { ...LANE_LIMITS, slowAfterMs: HOUR_MS };
    const send = async ({ headers }: WebhookRequest) => {
      const endpoint = headers['Idempotency-Key']?.split(':')[0] ?? '';
      assert.ok(!inFlight.has(endpoint));
      inFlight.add(endpoint);
      most = Math.max(most, inFlight.size);
      await gate.promise;
      inFlight.delete(endpoint);
      return ANSWERED;
    };
    const { sweeps } = startWorkers(t, lanes, send, limits);
    await waitFor(() => inFlight.size === share);
    assert.equal(most, share);
    gate.resolve();
    await waitFor(() => isDone(lanes));
    assert.equal(sweeps[0]?.waiting, 2 * (share + 6));
  });

  test('thirty endpoints of three owners that hang keep no delivery of a fourth waiting, at first and ever after', async (t) => {
    const lanes = await startLanes(t);
    const hostile = new Set<string>();
    for (const email of ['b@x', 'c@x', 'd@x']) {
      const ownerId = await lanes.account(email);
      for (let n = 0; n < 10; n++) {
        const id = await lanes.endpoint({}, ownerId);
        hostile.add(String(id));
        await lanes.queue(id, 50);
      }
    }
    const victim = await lanes.endpoint();
    await lanes.queue(victim);
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
    const { workers, schedule, places } = startWorkers(t, lanes, send, {
      places: {
        quick: { running: 6, runningPerKey: 4, ...WAITING },
        new: { running: 6, runningPerKey: 2, ...WAITING },
        slow: { running: 4, runningPerKey: 2, ...WAITING },
      },
      slowAfterMs: 20,
    });
    const delivered = async (count: number) =>
      (await lanes.sql`select from webhook_delivery where webhook_id = ${victim} and status = 'delivered'`)
        .length === count;
    // Each hostile one is tried once, and gives its place away while it hangs; the fourth owner's is there meanwhile.
    await waitFor(() => delivered(1));
    await waitFor(() => hanging.size === hostile.size && places.size === 0);
    isLater = true;
    for (const end of hanging) end();
    await waitFor(() => mostLater > 0);
    for (let n = 2; n <= 5; n++) {
      await lanes.queue(victim);
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

  test('who is woken while it looks for what is due looks once more: it may have looked too early', async (t) => {
    const lanes = await startLanes(t);
    const looks: (() => void)[] = [];
    const workers = new DeliveryWorkers({
      ...lanes.ports(() => assert.fail('nothing is due')),
      places: new LanePlaces(LANE_LIMITS),
      schedule: {
        add: async () => undefined,
        addAll: async () => undefined,
        take: () => new Promise((resolve) => looks.push(() => resolve([]))),
      },
      log: { info: () => undefined, warn: () => undefined },
      onOutboxFilled: () => undefined,
      onSweep: () => undefined,
    });
    for (let n = 0; n < 3; n++) workers.poke();
    assert.equal(looks.length, 1);
    looks[0]?.();
    await waitFor(() => looks.length === 2);
    looks[1]?.();
    await new Promise((resolve) => setImmediate(resolve));
    assert.equal(looks.length, 2);
  });

  test('a turn that fails is tried again, and the others go on', async (t) => {
    const lanes = await startLanes(t);
    const [bad, good] = [await lanes.endpoint(), await lanes.endpoint()];
    await lanes.queue(bad);
    await lanes.queue(good);
    let failures = 0;
    const { warnings } = startWorkers(t, lanes, async ({ headers }) => {
      if (headers['Idempotency-Key']?.startsWith(`${bad}:`) && failures++ === 0) throw new Error('planted');
      return ANSWERED;
    });
    const interrupted = () => lanes.sql`select from webhook_delivery where last_error = 'interrupted'`;
    await waitFor(async () => (await interrupted()).length === 1);
    await waitFor(
      async () => (await lanes.sql`select from webhook_delivery where status = 'delivered'`).length === 1,
    );
    assert.deepEqual(warnings, ['a turn of deliveries failed; trying again']);
  });

  test('a stop waits for the attempt in flight, writes its result, gives the lease back, and begins no other', async (t) => {
    const lanes = await startLanes(t);
    await lanes.queue(await lanes.endpoint(), 3);
    let sent = 0;
    const gate = Promise.withResolvers<void>();
    const { workers } = startWorkers(t, lanes, async () => {
      sent++;
      await gate.promise;
      return ANSWERED;
    });
    await waitFor(() => sent === 1);
    const stopped = workers.stop();
    gate.resolve();
    await stopped;
    assert.equal(sent, 1);
    const rows = await lanes.sql`select status from webhook_delivery where status = 'delivered'`;
    assert.equal(rows.length, 1);
    assert.equal((await lanes.sql`select from webhook where leased_until is not null`).length, 0);
  });

  test('the outbox stands in the schedule too: whoever takes it from there is told, and no endpoint is held up', async (t) => {
    const lanes = await startLanes(t);
    const { workers, schedule, filled } = startWorkers(t, lanes, async () => ANSWERED);
    await lanes.queue(await lanes.endpoint());
    await schedule.addAll([OUTBOX_LANE, 1].map((webhookId) => ({ webhookId, dueInMs: 0 })));
    workers.poke();
    await waitFor(() => filled.length === 1);
    await waitFor(() => isDone(lanes));
  });
});
