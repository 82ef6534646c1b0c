import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { denial, detailsOf, type WebhookOwner, webhookOwner } from '../support/webhooks/webhookOwner.ts';

const LEAST = { url: 'https://hooks.example.com/a', events: ['*'] };

const setup = webhookOwner();
const call: WebhookOwner['owner']['call'] = (...args) => setup.owner.call(...args);

/** An endpoint that the service has paused two hours ago. */
async function paused(): Promise<number> {
  const { id } = await setup.owner.make(LEAST);
  await setup.sql`
    update webhook set paused_at = '2026-03-02T08:40:00Z', paused_reason = 'endpoint_quota' where id = ${id}`;
  await setup.sql`
    insert into webhook_left_out (webhook_id, from_at) values (${id}, clock_timestamp() - interval '2 hours')`;
  return id;
}

const stateOf = async (id: number) => (await call('GET', `/${id}`)).body.data.paused;

describe('a paused endpoint', () => {
  test('says why and since when, where it is read and listed', async () => {
    const id = await paused();
    const expected = { reason: 'endpoint_quota', since: '2026-03-02T08:40:00.000Z' };
    assert.deepEqual(await stateOf(id), expected);
    const listed = (await call('GET', '?limit=200')).body.data;
    assert.deepEqual(listed.find((each: { id: number }) => each.id === id).paused, expected);
  });

  test('lists what it lacks by the hour', async () => {
    const id = await paused();
    const empty = await call('GET', `/${id}/left-out`);
    assert.deepEqual([empty.status, empty.body.data], [200, { events: 0, is_complete: true, hours: [] }]);
    await setup.sql`
      insert into fleet_event (world_id, device_id, device_imei, type, message, data, occurred_at)
      select a.world_id, 1, '350000000000001', 'rfid', 'm', '{}', clock_timestamp()
      from webhook w join account a on a.id = w.account_id cross join generate_series(1, 3) where w.id = ${id}`;
    const { events, is_complete, hours } = (await call('GET', `/${id}/left-out`)).body.data;
    assert.deepEqual([events, is_complete], [3, true]);
    for (const hour of hours) assert.match(hour.from, /^\d{4}-\d\d-\d\dT\d\d:00:00\.000Z$/);
  });

  test('is resumed, by its route and by being made active', async () => {
    const [first, second, third] = [await paused(), await paused(), await paused()];
    const resumed = await call('POST', `/${first}/resume`, {});
    assert.deepEqual([resumed.status, resumed.body.data.id, resumed.body.data.paused], [200, first, null]);
    assert.equal((await call('POST', `/${first}/resume`, {})).status, 200, 'again: nothing changes');
    await call('POST', `/${second}/resume`, { from: '2026-03-02T09:00:00Z' });
    await setup.owner.change(third, { active: true });
    for (const id of [first, second, third]) assert.equal(await stateOf(id), null);
    const rows = await setup.sql`
      select from webhook_left_out where webhook_id = any(${[first, second, third]}::bigint[]) and to_at is not null`;
    assert.equal(rows.length, 3, 'what they lack is made now');
  });

  test('stays paused when something else of it is changed, or when it is made inactive', async () => {
    const id = await paused();
    await setup.owner.change(id, { description: 'x' });
    await setup.owner.change(id, { active: false });
    assert.equal((await stateOf(id)).reason, 'endpoint_quota');
  });

  test('is resumed by its owner only, and with a sound body', async () => {
    const id = await paused();
    const stranger = await setup.newOwner();
    for (const [method, path] of [
      ['POST', `/${id}/resume`],
      ['GET', `/${id}/left-out`],
    ] as const) {
      const body = method === 'POST' ? {} : undefined;
      assert.equal(denial(await stranger.call(method, path, body)), '404 NOT_FOUND');
      assert.equal(denial(await call(method, path.replace(String(id), '999999'), body)), '404 NOT_FOUND');
      assert.equal(denial(await call(method, path.replace(String(id), 'x'), body)), '400 BAD_REQUEST');
    }
    for (const [body, detail] of [
      [{ from: 'yesterday' }, 'from INVALID'],
      [{ from: 7 }, 'from INVALID'],
      [[], 'null INVALID_BODY'],
      ['{', 'null INVALID_BODY'],
    ] as const) {
      const reply = await call('POST', `/${id}/resume`, body);
      assert.deepEqual([denial(reply), detailsOf(reply)], ['422 VALIDATION_ERROR', [detail]]);
    }
    assert.equal((await stateOf(id)).reason, 'endpoint_quota');
  });
});
