import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { callApi } from '../support/http/application.ts';
import { gist } from '../support/http/areas.ts';
import { ownerPod } from '../support/ownerPod.ts';
import type { Reply } from '../support/pod.ts';
import { countLockWaiters, holdTransaction } from '../support/postgres/holdTransaction.ts';
import { waitFor } from '../support/waitFor.ts';
import { storeTrips, TRIP_AREA } from './storedTrips.ts';

const IMEIS = Array.from({ length: 20 }, (_, n) => String(350_000_000_000_000 + n));
const START_MS = Math.floor(Date.now() / 1_000 - 86_400) * 1_000;
const BODY = {
  area: TRIP_AREA,
  from: new Date(START_MS).toISOString(),
  to: new Date(START_MS + 6_000_000).toISOString(),
};

const owner = ownerPod({ devices: IMEIS.map((imei) => ({ imei })) }, ({ sql }) =>
  storeTrips(sql, IMEIS, 5_000, START_MS),
);
const post = (key = owner.key, body: object = BODY): Promise<Reply> =>
  callApi(owner.pod, 'POST', '/v3/areas/backtest', { body, key });
const holdPoints = () =>
  holdTransaction(owner.sql, (tx) => tx.unsafe('lock table position in access exclusive mode'));

describe('while Postgres is slow', () => {
  test('a third backtest of an account is a 429, and others have their own', async () => {
    await owner.admin.account('other@example.com');
    const { key: otherKey } = await owner.admin.key('other@example.com');
    const { key: secondKey } = await owner.admin.key('owner@example.com');
    await owner.admin.device('other@example.com', '350000000009999');
    await waitFor(
      async () => (await owner.pod.get('/api/v3/devices/350000000009999', otherKey)).status === 200,
    );
    const release = await holdPoints();
    const two = [post(), post(secondKey)];
    await waitFor(async () => (await countLockWaiters(owner.sql)) === 2);
    const third = await post();
    assert.equal(gist(third), '429 TOO_MANY_REQUESTS');
    const other = post(otherKey);
    await waitFor(async () => (await countLockWaiters(owner.sql)) === 3);
    await release();
    const answers = await Promise.all([...two, other]);
    assert.deepEqual(
      answers.map(({ status }) => status),
      [200, 200, 200],
    );
    assert.equal(answers[0]?.body.meta.points, 20 * 5_000);
    assert.deepEqual(answers[0]?.body.data, answers[1]?.body.data);
    assert.equal((await post()).status, 200);
  });

  test('callers that hang up leave their places to others', async () => {
    const release = await holdPoints();
    const callers = [new AbortController(), new AbortController()];
    const left = callers.map(({ signal }) =>
      fetch(`${owner.pod.api}/api/v3/areas/backtest`, {
        method: 'POST',
        headers: { 'X-API-Key': owner.key, 'Content-Type': 'application/json' },
        body: JSON.stringify(BODY),
        signal,
      }).catch((error: Error) => error.name),
    );
    await waitFor(async () => (await countLockWaiters(owner.sql)) === 2);
    for (const caller of callers) caller.abort();
    assert.deepEqual(await Promise.all(left), ['AbortError', 'AbortError']);
    await release();
    await waitFor(async () => (await post()).status === 200);
  });
});

test('nothing is written', async () => {
  const count = async () => {
    const [row] = await owner.sql`
      select (select count(*) from fleet_event) as events, (select count(*) from area) as areas,
        (select count(*) from change) as changes, (select md5(string_agg(s::text, '' order by device_id)) from device_state s) as states`;
    return row;
  };
  const before = await count();
  const { body } = await post();
  assert.ok(body.data[0].entries > 100);
  assert.deepEqual(await count(), before);
});

test('more than 1 000 events are counted, and the earliest are listed by time and device', async () => {
  const { body } = await post();
  const [{ entries, exits, events }] = body.data;
  assert.ok(entries + exits > 1_000, `only ${entries + exits} events`);
  assert.equal(events.length, 1_000);
  const order = events.map(
    ({ timestamp, device }: { timestamp: string; device: string }) => `${timestamp} ${device}`,
  );
  assert.deepEqual(order, order.toSorted());
  const untilMs = Date.parse(events.at(-1).timestamp);
  const { body: earlier } = await post(owner.key, { ...BODY, to: new Date(untilMs - 1).toISOString() });
  assert.deepEqual(earlier.data[0].events, events.slice(0, earlier.data[0].events.length));
  assert.ok(earlier.data[0].events.length > 900);
});
