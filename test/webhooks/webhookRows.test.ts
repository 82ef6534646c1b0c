import assert from 'node:assert/strict';
import { test } from 'node:test';
import { selectSubscriptions } from '../../src/webhooks/webhooks.sql.ts';
import { startDeliveryDatabase } from '../support/webhooks/deliveryDatabase.ts';

test('only active endpoints are subscribed, with the world of their account', async (t) => {
  const { sql, accountId, endpoint } = await startDeliveryDatabase(t);
  const [active, inactive] = [
    await endpoint({ events: ['rfid', 'alarm'] }),
    await endpoint({ active: false }),
  ];
  const [account] = await sql<{ world_id: number }[]>`select world_id from account where id = ${accountId}`;
  const expected = [{ id: active, worldId: account?.world_id, events: ['rfid', 'alarm'] }];
  for (const ids of [null, [active, inactive], [active]])
    assert.deepEqual(await selectSubscriptions(sql, ids), expected);
  assert.deepEqual(await selectSubscriptions(sql, [inactive, 99_999]), []);
});
