import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { openSql, type Sql } from '../../src/store/sql.ts';
import { adminOf } from '../support/admin.ts';
import { type AreaApi, areaApi, CIRCLE, gist, POLYGON } from '../support/areas.ts';
import { type Pod, type Reply, request, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';

describe('POST with an Idempotency-Key', () => {
  let pod: Pod;
  let sql: Sql;
  let api: AreaApi;
  let colleague: AreaApi;
  let stranger: AreaApi;
  let keys = 0;

  before(async () => {
    const database = await createDatabase();
    sql = openSql(database.url, { maxConnections: 1, name: 'test' });
    const admin = adminOf(database.url);
    for (const email of ['owner@example.com', 'stranger@example.com']) await admin.account(email);
    pod = await startPod(database.url);
    api = areaApi(pod, (await admin.key('owner@example.com')).key);
    colleague = areaApi(pod, (await admin.key('owner@example.com')).key);
    stranger = areaApi(pod, (await admin.key('stranger@example.com')).key);
  });

  after(async () => {
    await sql.end();
    await pod.stop();
  });

  const newKey = (): string => `key-${++keys}`;
  const post = (body: unknown, key: string, by = api): Promise<Reply> =>
    by.post(body, { 'Idempotency-Key': key });
  const isReplay = ({ headers }: Reply): boolean => headers.get('idempotent-replayed') === 'true';
  const total = async (by = api): Promise<number> => (await by.get()).body.meta.total;

  /** The same answer to the byte, but for the mark of the repetition. */
  function assertReplayed(reply: Reply, first: Reply): void {
    assert.equal(isReplay(reply), true);
    assert.deepEqual([reply.status, reply.text], [first.status, first.text]);
    assert.equal(reply.headers.get('location'), first.headers.get('location'));
    const headersOf = ({ headers }: Reply) =>
      [...headers].filter(([name]) => name !== 'date' && name !== 'idempotent-replayed');
    assert.deepEqual(headersOf(reply), headersOf(first));
  }

  test('201 the first time, the same 201 again with Idempotent-Replayed: true, and one area', async () => {
    const [key, before] = [newKey(), await total()];
    const first = await post(CIRCLE, key);
    assert.deepEqual([first.status, isReplay(first)], [201, false]);
    assert.equal(first.headers.get('idempotent-replayed'), null);
    for (let n = 0; n < 3; n++) assertReplayed(await post(CIRCLE, key), first);
    assert.equal(await total(), before + 1);
  });

  test('warnings are repeated too', async () => {
    const [key, body] = [newKey(), { ...CIRCLE, radius_m: 90_000 }];
    const first = await post(body, key);
    assert.equal(first.body.meta.warnings[0].code, 'warnVeryLargeArea');
    assertReplayed(await post(body, key), first);
  });

  test('without the header, every call makes an area', async () => {
    const before = await total();
    for (let n = 0; n < 2; n++) assert.equal((await api.post(CIRCLE)).status, 201);
    assert.equal(await total(), before + 2);
  });

  test('what was changed or deleted since is answered as it was made', async () => {
    const key = newKey();
    const first = await post(CIRCLE, key);
    const { id } = first.body.data;
    await api.patch(id, { name: 'Renamed' });
    assertReplayed(await post(CIRCLE, key), first);
    await api.remove(id);
    assertReplayed(await post(CIRCLE, key), first);
    assert.equal(gist(await api.get(`/${id}`)), '404 NOT_FOUND');
  });

  test('a key belongs to the account: its other API keys share it, other accounts do not', async () => {
    const key = newKey();
    const first = await post(CIRCLE, key);
    assertReplayed(await post(CIRCLE, key, colleague), first);
    const foreign = await post(POLYGON, key, stranger);
    assert.deepEqual([foreign.status, isReplay(foreign)], [201, false]);
    assert.equal(await total(stranger), 1);
  });

  test('the order of members and the blanks of the JSON do not matter', async () => {
    const key = newKey();
    const first = await post(JSON.stringify(CIRCLE), key);
    const { center, ...rest } = CIRCLE;
    const other = `{ "center" : {"lng":${center.lng}, "lat":${center.lat}0},\n${JSON.stringify(rest).slice(1)}`;
    assert.deepEqual(JSON.parse(other), CIRCLE);
    assertReplayed(await post(other, key), first);
  });

  test('422 MISMATCH with another body; the first answer stays', async () => {
    const key = newKey();
    const first = await post(CIRCLE, key);
    const before = await total();
    for (const body of [
      { ...CIRCLE, name: 'B' },
      { ...CIRCLE, x: 1 },
      POLYGON,
      { ...CIRCLE, name: 'B', external_id: 'new' },
      {},
    ])
      assert.equal(gist(await post(body, key)).startsWith('422 '), true);
    const mismatch = await post({ ...CIRCLE, name: 'B' }, key);
    assert.equal(gist(mismatch), '422 Idempotency-Key MISMATCH');
    assert.equal(isReplay(mismatch), false);
    assertReplayed(await post(CIRCLE, key), first);
    assert.equal(await total(), before);
  });

  test('a refused creation leaves the key free: 422, 409 and 413 are not kept', async () => {
    const key = newKey();
    await api.make({ ...CIRCLE, external_id: 'taken' });
    const refusals: [body: unknown, expected: string][] = [
      ['{', '422 null INVALID_BODY'],
      [{ ...CIRCLE, radius_m: 1 }, '422 radius_m OUT_OF_RANGE'],
      [{ ...CIRCLE, external_id: 'taken' }, '409 CONFLICT'],
      [{ ...CIRCLE, padding: 'x'.repeat(1024 * 1024) }, '413 PAYLOAD_TOO_LARGE'],
    ];
    for (const [body, expected] of refusals) {
      const reply = await post(body, key);
      assert.deepEqual([gist(reply), isReplay(reply)], [expected, false]);
    }
    const first = await post(POLYGON, key);
    assert.deepEqual([first.status, isReplay(first)], [201, false]);
    assertReplayed(await post(POLYGON, key), first);
  });

  describe('400: a malformed key, before the body is judged', () => {
    const malformed = ['', ' ', 'a b', 'a/b', 'a#b', 'è', 'a,b', '"a"', '@', 'x'.repeat(201)];
    for (const key of malformed) {
      test(JSON.stringify(key.slice(0, 20)), async () => {
        const before = await total();
        assert.equal(gist(await post({}, key)), '400 BAD_REQUEST');
        assert.equal(gist(await post(CIRCLE, key)), '400 BAD_REQUEST');
        assert.equal(await total(), before);
      });
    }

    test('two keys in one call', async () => {
      const reply = await request(`${pod.api}/api/v3/areas`, {
        method: 'POST',
        headers: [
          ['X-API-Key', api.key],
          ['Content-Type', 'application/json'],
          ['Idempotency-Key', 'one'],
          ['Idempotency-Key', 'two'],
        ],
        body: JSON.stringify(CIRCLE),
      });
      assert.equal(reply.status, 400);
    });
  });

  test('keys of every allowed character, from one to two hundred, each stand for themselves', async () => {
    const before = await total();
    const various = ['a', 'A', '0', '.', '..', '-', '_', ':', 'azAZ09._:-', 'x'.repeat(200), 'x'.repeat(199)];
    for (const key of various) assert.equal(isReplay(await post(CIRCLE, key)), false, key);
    for (const key of various) assert.equal(isReplay(await post(CIRCLE, key)), true, key);
    assert.equal(await total(), before + various.length);
  });

  test('a key is forgotten after 24 hours, not before', async () => {
    const key = newKey();
    const first = await post(CIRCLE, key);
    const age = (interval: string) =>
      sql`update idempotent_answer set created_at = clock_timestamp() - ${interval}::interval where key = ${key}`;
    await age('23 hours 59 minutes');
    assertReplayed(await post(CIRCLE, key), first);
    assert.equal(gist(await post(POLYGON, key)), '422 Idempotency-Key MISMATCH');
    await age('24 hours 1 second');
    const second = await post(POLYGON, key);
    assert.deepEqual([second.status, isReplay(second)], [201, false]);
    assert.notEqual(second.body.data.id, first.body.data.id);
    assertReplayed(await post(POLYGON, key), second);
  });

  test('20 at once: one area, one 201 and 19 replays of it', async () => {
    for (let round = 0; round < 5; round++) {
      const [key, before] = [newKey(), await total()];
      const replies = await Promise.all(Array.from({ length: 20 }, () => post(CIRCLE, key)));
      const [first, ...more] = replies.filter((reply) => !isReplay(reply));
      assert.ok(first);
      assert.equal(more.length, 0);
      for (const reply of replies) if (reply !== first) assertReplayed(reply, first);
      assert.equal(await total(), before + 1);
    }
  });

  test('20 at once with a code that is free: one area, no 409', async () => {
    const [key, body] = [newKey(), { ...CIRCLE, external_id: 'parallel' }];
    const replies = await Promise.all(Array.from({ length: 20 }, () => post(body, key)));
    assert.deepEqual([...new Set(replies.map(gist))], ['201']);
    assert.equal(replies.filter(isReplay).length, 19);
    assert.equal((await api.get('?external_id=parallel')).body.meta.total, 1);
  });

  test('the header means nothing to PUT, PATCH, DELETE and import, whatever it says', async () => {
    const headers = { 'Idempotency-Key': 'not for you ###' };
    const id = await api.make(CIRCLE);
    assert.equal((await api.send('PATCH', `/${id}`, { body: { name: 'A' }, headers })).status, 200);
    assert.equal(
      (await api.send('PUT', `/by-external-id/unaffected`, { body: CIRCLE, headers })).status,
      201,
    );
    const imported = { type: 'Point', coordinates: [1, 2] };
    for (let n = 0; n < 2; n++) {
      const reply = await api.send('POST', '/import', { body: imported, headers });
      assert.equal(reply.status, 201);
      assert.equal(reply.headers.get('idempotent-replayed'), null);
    }
    assert.equal((await api.send('DELETE', `/${id}`, { headers })).status, 204);
  });
});
