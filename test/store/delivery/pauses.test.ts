import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { deliverEndpoint } from '../../../src/flows/delivery/deliverEndpoint.ts';
import { endPause, pauseWebhooks, selectDeadWebhooks } from '../../../src/store/delivery/pauses.ts';
import {
  ANSWERED,
  type DeliveryDatabase,
  startDeliveryDatabase,
} from '../../support/webhooks/deliveryDatabase.ts';

const FAILED = { kind: 'answered', statusCode: 500, durationMs: 1 } as const;

/** Sends so many deliveries of one attempt each, all with this answer. */
async function attempts(database: DeliveryDatabase, id: number, count: number, answer = ANSWERED) {
  await database.queue(id, count);
  const ports = database.ports(async () => answer);
  while ((await deliverEndpoint(ports, id)) === 0);
}

const daysPass = ({ sql }: DeliveryDatabase, days: number) => sql`
  update webhook set failing_since = failing_since - make_interval(days => ${days}),
    failed_at = failed_at - make_interval(days => ${days})`;

const dead = async ({ sql }: DeliveryDatabase) =>
  (await selectDeadWebhooks(sql)).map(({ webhookId }) => webhookId);

describe('an endpoint is dead', () => {
  test('when it has failed for five days without a success, and still does', async (t) => {
    const database = await startDeliveryDatabase(t);
    const id = await database.endpoint({ retryPolicy: 'none' });
    await attempts(database, id, 20, FAILED);
    assert.deepEqual(await dead(database), [], 'it has failed today');
    await daysPass(database, 6);
    assert.deepEqual(await dead(database), [], 'nothing was tried since');
    await attempts(database, id, 1, FAILED);
    assert.deepEqual(await dead(database), [id]);
    const [owner] = await selectDeadWebhooks(database.sql);
    assert.ok(owner);
    await pauseWebhooks(database.sql, owner, [{ webhookId: id, reason: 'failing' }]);
    assert.deepEqual(await dead(database), [], 'once');
    assert.equal((await database.queue(id)).length, 0);
  });

  test('not when one attempt has succeeded, nor after a few failures far apart', async (t) => {
    const database = await startDeliveryDatabase(t);
    const [alive, rare] = [
      await database.endpoint({ retryPolicy: 'none' }),
      await database.endpoint({ retryPolicy: 'none' }),
    ];
    await attempts(database, alive, 20, FAILED);
    await attempts(database, alive, 1);
    await attempts(database, alive, 1, FAILED);
    await attempts(database, rare, 1, FAILED);
    await daysPass(database, 6);
    await attempts(database, alive, 1, FAILED);
    await attempts(database, rare, 1, FAILED);
    assert.deepEqual(await dead(database), []);
  });

  test('not any more when its owner has resumed it', async (t) => {
    const database = await startDeliveryDatabase(t);
    const id = await database.endpoint({ retryPolicy: 'none' });
    await attempts(database, id, 20, FAILED);
    await daysPass(database, 6);
    await attempts(database, id, 1, FAILED);
    const [owner] = await selectDeadWebhooks(database.sql);
    assert.ok(owner);
    await pauseWebhooks(database.sql, owner, [{ webhookId: id, reason: 'failing' }]);
    const { sql, accountId } = database;
    assert.equal(await sql.begin((tx) => endPause(tx, accountId + 1, id, null)), false, "a stranger's try");
    assert.equal(await sql.begin((tx) => endPause(tx, accountId, id, null)), true);
    await attempts(database, id, 1, FAILED);
    assert.deepEqual(await dead(database), []);
    assert.equal((await database.queue(id)).length, 1);
  });
});
