import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { faceOf } from '../../support/http/application.ts';
import { type AreaApi, areaApi, areaPod, CIRCLE, gist, POLYGON } from '../../support/http/areas.ts';
import { OWNER } from '../../support/ownerPod.ts';
import { type Reply, request } from '../../support/pod.ts';

describe('an Idempotency-Key', () => {
  let stranger: AreaApi;
  let keys = 0;
  const service = areaPod(async () => {
    stranger = await service.newAccount();
  });
  const { api } = service;

  const newKey = (): string => `key-${++keys}`;
  const post = (body: unknown, key: string, by = api): Promise<Reply> =>
    by.post(body, { 'Idempotency-Key': key });
  const isReplay = ({ headers }: Reply): boolean => headers.get('idempotent-replayed') === 'true';
  const total = async (by = api): Promise<number> => (await by.get()).body.meta.total;

  /** The same answer to the byte, but for the mark of the repetition. */
  function assertReplayed(reply: Reply, first: Reply): void {
    assert.ok(isReplay(reply));
    const headers = new Headers([...reply.headers].filter(([name]) => name !== 'idempotent-replayed'));
    assert.deepEqual(faceOf({ ...reply, headers }), faceOf(first));
  }

  function assertCreated(reply: Reply): void {
    assert.deepEqual([reply.status, reply.headers.get('idempotent-replayed')], [201, null]);
  }

  test('makes a repetition of POST answer the same 201 with Idempotent-Replayed: true, and one area', async () => {
    const [key, before, body] = [newKey(), await total(), { ...CIRCLE, radius_m: 90_000 }];
    const first = await post(body, key);
    assertCreated(first);
    assert.equal(first.body.meta.warnings[0].code, 'warnVeryLargeArea');
    assertReplayed(await post(body, key), first);
    assert.equal(await total(), before + 1);
  });

  test('answers with the area as it was made, when that was changed or deleted since', async () => {
    const key = newKey();
    const first = await post(CIRCLE, key);
    const { id } = first.body.data;
    await api.patch(id, { name: 'Renamed' });
    assertReplayed(await post(CIRCLE, key), first);
    await api.remove(id);
    assertReplayed(await post(CIRCLE, key), first);
    assert.equal(gist(await api.get(`/${id}`)), '404 NOT_FOUND');
  });

  test('answers so with an area whose answer is too long to be kept', async () => {
    const key = newKey();
    const points = Array.from({ length: 500 }, (_, n) => ({
      lat: 41 + Math.sin((n * Math.PI) / 250) / 7,
      lng: 12 + Math.cos((n * Math.PI) / 250) / 3,
    }));
    const body = { ...POLYGON, points, external_id: 'long', dwell_seconds: 30 };
    const first = await post(body, key);
    assertCreated(first);
    assertReplayed(await post(body, key), first);
    const [row] = await service.sql`
      select answer is null as short, area_created_at is not null as timed from idempotent_answer where key = ${key}`;
    assert.deepEqual(row, { short: true, timed: true });
    await api.patch(first.body.data.id, { name: 'Renamed', points: points.slice(0, 100) });
    assertReplayed(await post(body, key), first);
    await api.remove(first.body.data.id);
    assertReplayed(await post(body, key), first);
  });

  test('is shared by the API keys of an account, and with no other account', async () => {
    const key = newKey();
    const first = await post(CIRCLE, key);
    const colleague = areaApi(service.pod, (await service.admin.key(OWNER)).key);
    assertReplayed(await post(CIRCLE, key, colleague), first);
    assertCreated(await post(POLYGON, key, stranger));
  });

  test('is refused with 422 MISMATCH for another body, and keeps its first answer', async () => {
    const key = newKey();
    const first = await post(CIRCLE, key);
    const before = await total();
    for (const body of [{ ...CIRCLE, name: 'B' }, { ...CIRCLE, x: 1 }, { ...CIRCLE, radius_m: 1 }, POLYGON]) {
      const mismatch = await post(body, key);
      assert.deepEqual([gist(mismatch), isReplay(mismatch)], ['422 Idempotency-Key MISMATCH', false]);
    }
    assertReplayed(await post(CIRCLE, key), first);
    assert.equal(await total(), before);
  });

  test('is free again when its call was refused', async () => {
    const key = newKey();
    await api.make({ ...CIRCLE, external_id: 'taken' });
    for (const [body, expected] of [
      ['{', '422 null INVALID_BODY'],
      [{ ...CIRCLE, radius_m: 1 }, '422 radius_m OUT_OF_RANGE'],
      [{ ...CIRCLE, external_id: 'taken' }, '409 CONFLICT'],
      [{ ...CIRCLE, padding: 'x'.repeat(1024 * 1024) }, '413 PAYLOAD_TOO_LARGE'],
    ] as const) {
      const reply = await post(body, key);
      assert.deepEqual([gist(reply), isReplay(reply)], [expected, false]);
    }
    const first = await post(POLYGON, key);
    assertCreated(first);
    assertReplayed(await post(POLYGON, key), first);
  });

  test('that is malformed, or given twice, is refused with 400 before the body is looked at', async () => {
    const before = await total();
    for (const key of ['', 'a b', 'a/b', 'a@b', 'a#b', 'è', '"a"', 'x'.repeat(201)]) {
      for (const body of [{}, CIRCLE]) assert.equal(gist(await post(body, key)), '400 BAD_REQUEST', key);
    }
    const twice = await request(`${service.pod.api}/api/v3/areas`, {
      method: 'POST',
      headers: [
        ['X-API-Key', api.key],
        ['Content-Type', 'application/json'],
        ['Idempotency-Key', 'one'],
        ['Idempotency-Key', 'two'],
      ],
      body: JSON.stringify(CIRCLE),
    });
    assert.equal(twice.status, 400);
    assert.equal(await total(), before);
  });

  test('differs from others by case and length', async () => {
    const various = ['a', 'A', '..', 'azAZ09._:-', 'x'.repeat(200), 'x'.repeat(199)];
    for (const key of various) assertCreated(await post(CIRCLE, key));
    for (const key of various) assert.ok(isReplay(await post(CIRCLE, key)), key);
  });

  test('is forgotten after 24 hours, and not before', async () => {
    const key = newKey();
    const first = await post(CIRCLE, key);
    const age = (interval: string) =>
      service.admin.sql(
        (sql) =>
          sql`update idempotent_answer set created_at = clock_timestamp() - ${interval}::interval where key = ${key}`,
      );
    await age('23 hours 59 minutes');
    assertReplayed(await post(CIRCLE, key), first);
    await age('24 hours 1 second');
    const second = await post(POLYGON, key);
    assertCreated(second);
    assertReplayed(await post(POLYGON, key), second);
  });

  test('means nothing to PUT, PATCH, DELETE and import, whatever it says', async () => {
    const headers = { 'Idempotency-Key': 'not for you ###' };
    const id = await api.make(CIRCLE);
    const imported = { type: 'Point', coordinates: [1, 2] };
    for (const [method, path, body, status] of [
      ['PATCH', `/${id}`, { name: 'A' }, 200],
      ['PUT', '/by-external-id/unaffected', CIRCLE, 201],
      ['POST', '/import', imported, 201],
      ['POST', '/import', imported, 201],
      ['DELETE', `/${id}`, undefined, 204],
    ] as const) {
      const reply = await api.send(method, path, { body, headers });
      assert.deepEqual([reply.status, reply.headers.get('idempotent-replayed')], [status, null]);
    }
  });
});
