import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { LocalDeliverySchedule } from '../../src/redis/wakeUps.ts';
import { DeliveryWaker } from '../../src/webhooks/delivery/deliveryWorkers.ts';
import { BacklogWatch } from '../../src/webhooks/pauses/backlogWatch.ts';
import { waitFor } from '../support/waitFor.ts';
import { type DeliveryDatabase, startDeliveryDatabase } from '../support/webhooks/deliveryDatabase.ts';

const STEP = 1_000;

/** Says in the log what was paused, as `id reason`. */
function startWatch(t: TestContext, { sql }: DeliveryDatabase) {
  const paused: string[] = [];
  const watch = new BacklogWatch({
    sql,
    log: {
      info: () => undefined,
      warn: (fields) => {
        const { webhook_id, reason } = fields as { webhook_id: number; reason: string };
        paused.push(`${webhook_id} ${reason}`);
      },
    },
  });
  t.after(() => watch.stop());
  return { waker: new DeliveryWaker(new LocalDeliverySchedule(), watch), paused };
}

const setQuota = ({ sql }: DeliveryDatabase, perAccount: number, perEndpoint: number) => sql`
  update plan set max_waiting_deliveries = ${perAccount}, max_waiting_per_webhook = ${perEndpoint}`;

describe('an endpoint with too many waiting deliveries', () => {
  test('is paused and gets no more; one of the same account and one of another go on', async (t) => {
    const database = await startDeliveryDatabase(t);
    await setQuota(database, 1_000, 5);
    const strangerId = await database.account('b@x');
    const flooded = await database.endpoint();
    const [own, foreign] = [await database.endpoint(), await database.endpoint({}, strangerId)];
    await database.queue(flooded, 6);
    await database.queue(own, 5);
    await database.queue(foreign, 6);
    const { waker, paused } = startWatch(t, database);
    waker.queued(new Map([[flooded, STEP - 1]]));
    waker.queued(new Map([[flooded, 1]]));
    await waitFor(() => paused.length > 0);
    assert.deepEqual(paused, [`${flooded} endpoint_quota`]);
    assert.equal((await database.queue(flooded)).length, 0);
    for (const other of [own, foreign]) assert.equal((await database.queue(other)).length, 1);
    const changes = await database.sql`select from change where kind = 'webhook' and entity_id = ${flooded}`;
    assert.equal(changes.length, 1, 'other pods learn of it');
  });

  test('is paused for its account when many of them have less each', async (t) => {
    const database = await startDeliveryDatabase(t);
    await setQuota(database, 200, 150);
    const [first, second, small] = [
      await database.endpoint(),
      await database.endpoint(),
      await database.endpoint(),
    ];
    await database.queue(first, 100);
    await database.queue(second, 100);
    await database.queue(small, 2);
    const { waker, paused } = startWatch(t, database);
    waker.queued(new Map([[small, STEP]]));
    await waitFor(() => paused.length === 2);
    assert.deepEqual(paused.toSorted(), [`${first} account_quota`, `${second} account_quota`]);
    assert.equal((await database.queue(small)).length, 1);
  });
});
