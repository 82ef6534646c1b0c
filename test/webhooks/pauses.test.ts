import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { deliverEndpoint } from '../../src/webhooks/delivery/deliverEndpoint.ts';
import {
  endPause,
  pauseWebhooks,
  selectDeadWebhooks,
  selectQuotaOwners,
} from '../../src/webhooks/pauses/pauses.sql.ts';
import { selectWebhook, selectWebhooks } from '../../src/webhooks/webhooks.sql.ts';
import { strictApi } from '../support/http/strictApi.ts';
import {
  ANSWERED,
  type DeliveryDatabase,
  startDeliveryDatabase,
} from '../support/webhooks/deliveryDatabase.ts';

const FAILED = { kind: 'answered', statusCode: 500, answer: '', durationMs: 1 } as const;

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
    const id = await database.endpoint({ retry_policy: 'none' });
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
      await database.endpoint({ retry_policy: 'none' }),
      await database.endpoint({ retry_policy: 'none' }),
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
    const id = await database.endpoint({ retry_policy: 'none' });
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

describe('an endpoint that fails', () => {
  test('says since when, how often, and when it is tried again, until an attempt succeeds', async (t) => {
    const database = await startDeliveryDatabase(t);
    const { sql, accountId } = database;
    const id = await database.endpoint();
    const other = await database.endpoint();
    await attempts(database, other, 1, FAILED);
    const failing = async () => (await selectWebhook(sql, accountId, id))?.failing;
    await attempts(database, id, 1);
    assert.equal(await failing(), null);
    await attempts(database, id, 3, FAILED);
    await sql`update webhook set failing_since = date_trunc('milliseconds', failing_since)`;
    await sql`update webhook_delivery set next_attempt_at = date_trunc('milliseconds', next_attempt_at)`;
    const [row] = await sql<{ since: Date; next: Date }[]>`
      select failing_since as since,
        (select min(next_attempt_at) from webhook_delivery where webhook_id = ${id}) as next
      from webhook where id = ${id}`;
    assert.ok(row);
    const told = { since: row.since.toISOString(), attempts: 3, next_attempt_at: row.next.toISOString() };
    assert.deepEqual(await failing(), told);
    const listed = await selectWebhooks(sql, accountId, { limit: 10, offset: 0 });
    assert.deepEqual(
      listed.map((each) => [each.id, each.failing?.attempts]),
      [
        [id, 3],
        [other, 1],
      ],
    );
    await sql`update webhook set active = false where id = ${id}`;
    assert.deepEqual(await failing(), { ...told, next_attempt_at: null }, 'what waits is held');
    await sql`update webhook set active = true where id = ${id}`;
    await attempts(database, id, 1);
    assert.equal(await failing(), null);
  });
});

describe('a pause', () => {
  test('is told to the endpoints of its account that go on and ask for it, and to nobody else', async (t) => {
    const database = await startDeliveryDatabase(t);
    const { sql } = database;
    const paused = [await database.endpoint(), await database.endpoint()];
    const told = [await database.endpoint(), await database.endpoint({ events: ['webhook_paused'] })];
    await database.endpoint({ events: ['alarm'] });
    await database.endpoint({ active: false });
    await database.endpoint({}, await database.account('b@x'));
    const [owner] = await selectQuotaOwners(sql, paused);
    assert.ok(owner);
    const pauses = paused.map((webhookId) => ({ webhookId, reason: 'account_quota' as const }));
    await pauseWebhooks(sql, owner, pauses);
    assert.deepEqual(await pauseWebhooks(sql, owner, pauses), [], 'they are paused, and that was told');
    const bodies: { readonly to: number; readonly body: string }[] = [];
    for (const id of told) {
      const ports = database.ports(async ({ body }) => {
        bodies.push({ to: id, body: body.toString() });
        return ANSWERED;
      });
      while ((await deliverEndpoint(ports, id)) === 0);
    }
    const [{ queued } = { queued: 0 }] = await sql<{ queued: number }[]>`
      select count(*)::int as queued from webhook_delivery`;
    assert.equal(queued, 4, 'each of two endpoints is told of each of two');
    assert.deepEqual(
      bodies.map(({ to, body }) => [to, JSON.parse(body).data.webhook_id]),
      told.flatMap((to) => paused.map((id) => [to, id])),
    );
    const first = JSON.parse(bodies[0]?.body ?? '');
    const { type, created_at: createdAt, data } = first;
    assert.equal(type, 'webhook_paused');
    assert.deepEqual([data.reason, data.paused_at], ['account_quota', createdAt]);
    assert.equal(strictApi().mismatchOf(['components', 'schemas', 'DeliveryBody'], first), null);
  });
});
