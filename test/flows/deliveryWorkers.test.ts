import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { DeliveryWorkers } from '../../src/flows/deliveryWorkers.ts';
import type { SendResult, WebhookRequest } from '../../src/net/sendWebhook.ts';
import { LocalDeliverySchedule } from '../../src/queue/deliverySchedule.ts';
import { ANSWERED, type QueuedLanes, startLanes } from '../support/queuedLanes.ts';
import { waitFor } from '../support/waitFor.ts';

const LANES_MAX = 256;

function startWorkers(
  t: TestContext,
  lanes: QueuedLanes,
  send: (request: WebhookRequest) => Promise<SendResult>,
) {
  const warnings: string[] = [];
  const sweeps: { waiting: number }[] = [];
  const workers = new DeliveryWorkers({
    ...lanes.ports(send),
    schedule: new LocalDeliverySchedule(),
    log: { info: () => undefined, warn: (_, message) => void warnings.push(message) },
    onSweep: (backlog) => void sweeps.push(backlog),
  });
  workers.start();
  t.after(() => workers.stop());
  return { workers, warnings, sweeps };
}

const isDone = async ({ sql }: QueuedLanes): Promise<boolean> =>
  (await sql`select from webhook_delivery where status <> 'delivered'`).length === 0;

describe('the lanes of a pod', () => {
  test('a start finds what waits; so many run side by side and no more, each endpoint once', async (t) => {
    const lanes = await startLanes(t);
    const ids = Array.from({ length: LANES_MAX + 6 }, async () => lanes.queue(await lanes.endpoint(), 2));
    await Promise.all(ids);
    const inFlight = new Set<string>();
    let most = 0;
    const gate = Promise.withResolvers<void>();
    const { sweeps } = startWorkers(t, lanes, async ({ headers }) => {
      const endpoint = headers['Idempotency-Key']?.split(':')[0] ?? '';
      assert.ok(!inFlight.has(endpoint));
      inFlight.add(endpoint);
      most = Math.max(most, inFlight.size);
      await gate.promise;
      inFlight.delete(endpoint);
      return ANSWERED;
    });
    await waitFor(() => inFlight.size === LANES_MAX);
    gate.resolve();
    await waitFor(() => isDone(lanes));
    assert.equal(most, LANES_MAX);
    assert.equal(sweeps[0]?.waiting, 2 * (LANES_MAX + 6));
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
});
