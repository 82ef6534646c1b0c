import assert from 'node:assert/strict';
import { test } from 'node:test';
import { deleteWebhook } from '../../src/store/removedWebhooks.ts';
import {
  insertWebhook,
  rotateSecret,
  selectSubscriptions,
  selectWebhook,
  updateWebhook,
} from '../../src/store/webhooks.ts';
import { startLanes } from '../support/queuedLanes.ts';

const OTHER_ACCOUNT = 99_999;

test('nobody else reads, changes, rotates or deletes an endpoint', async (t) => {
  const { sql, accountId, endpoint } = await startLanes(t);
  const id = await endpoint();
  const row = () => sql`select * from webhook where id = ${id}`;
  const before = await row();
  assert.equal(await selectWebhook(sql, OTHER_ACCOUNT, id), undefined);
  assert.equal(await updateWebhook(sql, OTHER_ACCOUNT, id, { active: false }), undefined);
  assert.equal(await rotateSecret(sql, OTHER_ACCOUNT, id, Buffer.from('x'), 24), undefined);
  assert.equal(await deleteWebhook(sql, OTHER_ACCOUNT, id), false);
  assert.deepEqual(await row(), before);
  assert.equal(await deleteWebhook(sql, accountId, id), true);
});

test('only active endpoints are subscribed, with the world of their account', async (t) => {
  const { sql, accountId, endpoint } = await startLanes(t);
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

test('parallel inserts stay within the limit of their account', async (t) => {
  const { sql, accountId } = await startLanes(t);
  const draft = {
    url: 'https://hooks.example.com/',
    description: null,
    events: ['*'],
    retryPolicy: 'none',
    maxRetries: 1,
    active: true,
  } as const;
  const insert = () => sql.begin((tx) => insertWebhook(tx, accountId, draft, Buffer.from('x'), 3));
  const made = await Promise.all(Array.from({ length: 9 }, insert));
  assert.equal(made.filter((webhook) => webhook !== undefined).length, 3);
});
