import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { adminOf } from '../support/admin.ts';
import { manualClock } from '../support/manualClock.ts';
import { type Pod, type Reply, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';

const DAY_MS = 86_400_000;
const HOUR_MS = 3_600_000;
/** A noon, so that whole days reach to a noon and not to a midnight. */
const NOW_MS = Math.floor(Date.now() / DAY_MS) * DAY_MS + DAY_MS / 2;
const SHARED = '350000000000001';
const DENSE = '350000000000002';
const SILENT = '350000000000003';

/** Ages of the points of the shared device, newest first. */
const AGES_MS = [
  0,
  HOUR_MS,
  30 * DAY_MS - 1,
  30 * DAY_MS,
  30 * DAY_MS + 1,
  180 * DAY_MS,
  180 * DAY_MS + 1,
  400 * DAY_MS,
  730 * DAY_MS,
];
const DENSE_COUNT = 1_100;
const PLANS = ['basic', 'pro', 'enterprise', 'default'] as const;

describe('history', () => {
  const clock = manualClock(NOW_MS);
  const keys = new Map<string, string>();
  let pod: Pod;

  before(async () => {
    const database = await createDatabase();
    const admin = adminOf(database.url);
    for (const plan of PLANS) {
      const email = `${plan}@example.com`;
      await admin.account(email, { organization: 'Haulage', ...(plan === 'default' ? {} : { plan }) });
      keys.set(plan, (await admin.key(email)).key);
    }
    for (const imei of [SHARED, DENSE, SILENT])
      await admin.device('basic@example.com', imei, '--organization');
    pod = await startPod(database.url, { clock });
    await pod.points(
      AGES_MS.map((ageMs, n) => ({
        imei: SHARED,
        recorded_at: NOW_MS - ageMs,
        latitude: 41 + n / 10,
        longitude: -12.5,
        altitude_m: 7,
        speed_kmh: n + 0.5,
        heading: 359.9,
        satellites: 12,
      })),
    );
    await pod.points(
      Array.from({ length: DENSE_COUNT }, (_, n) => ({
        imei: DENSE,
        recorded_at: NOW_MS - n * 1_000,
        latitude: 10,
        longitude: 10 + n / 1e4,
      })),
    );
  });

  after(() => pod.stop());

  const ages = ({ body }: Reply): number[] =>
    body.data.map((point: { recorded_at: string }) => NOW_MS - Date.parse(point.recorded_at));

  for (const version of ['v2', 'v3']) {
    const get = (plan: string, imei: string, query = ''): Promise<Reply> =>
      pod.get(`/api/${version}/devices/${imei}/history${query}`, keys.get(plan));

    describe(`${version} 200`, () => {
      test('a point shows every documented field and no other', async () => {
        const { status, body } = await get('pro', SHARED, '?limit=1');
        assert.equal(status, 200);
        assert.deepEqual(body, {
          data: [
            {
              latitude: 41,
              longitude: -12.5,
              speed_kmh: 0.5,
              heading: 359.9,
              satellites: 12,
              recorded_at: new Date(NOW_MS).toISOString(),
            },
          ],
          meta: { pagination: { limit: 1, offset: 0, count: 1 } },
        });
      });

      test('a device that has not reported anything has an empty history', async () => {
        const { status, body } = await get('pro', SILENT);
        assert.deepEqual([status, body.data], [200, []]);
        assert.deepEqual(body.meta.pagination, { limit: 500, offset: 0, count: 0 });
      });

      for (const [plan, days] of [
        ['basic', 30],
        ['pro', 180],
        ['default', 180],
        ['enterprise', 730],
      ] as const) {
        test(`a reader on the plan ${plan} sees ${days} days of a shared device, newest first`, async () => {
          const retained = AGES_MS.filter((ageMs) => ageMs <= days * DAY_MS);
          assert.deepEqual(ages(await get(plan, SHARED)), retained);
          assert.deepEqual(ages(await get(plan, SHARED, '?from=2001-01-01')), retained);
          assert.deepEqual(
            ages(await get(plan, SHARED, '?from=0001-01-01&to=9999-12-31T23:59:59.999Z')),
            retained,
          );
          assert.deepEqual(ages(await get(plan, SHARED, '?to=2001-01-01')), []);
        });
      }

      const iso = (ageMs: number): string => new Date(NOW_MS - ageMs).toISOString();
      const day = (ageMs: number): string => iso(ageMs).slice(0, 10);
      const hour = [HOUR_MS];
      const windows: [name: string, query: string, expected: number[]][] = [
        ['from is included', `from=${iso(HOUR_MS)}`, [0, HOUR_MS]],
        ['to is included', `to=${iso(30 * DAY_MS + 1)}`, [30 * DAY_MS + 1, 180 * DAY_MS]],
        ['one instant', `from=${iso(HOUR_MS)}&to=${iso(HOUR_MS)}`, hour],
        ['a millisecond later', `from=${iso(HOUR_MS - 1)}&to=${iso(1)}`, []],
        ['from after to', `from=${iso(0)}&to=${iso(HOUR_MS)}`, []],
        ['from in the future', `from=${iso(-DAY_MS)}`, []],
        ['a date is midnight UTC', `from=${day(0)}`, [0, HOUR_MS]],
        [
          'a date is midnight UTC, as an end too',
          `from=${day(31 * DAY_MS)}&to=${day(0)}`,
          AGES_MS.slice(2, 5),
        ],
        ['an offset', `from=${offsetForm(HOUR_MS)}&to=${iso(1)}`, hour],
        ['no zone is UTC', `from=${iso(HOUR_MS).slice(0, -1)}&to=${iso(1)}`, hour],
        ['microseconds are cut', `from=${iso(HOUR_MS).replace('Z', '999Z')}&to=${iso(1)}`, hour],
        ['blank ends are open', 'from=&to=%20', AGES_MS.slice(0, 6)],
        ['an offset parameter is no part of this list', 'offset=3', AGES_MS.slice(0, 6)],
      ];
      for (const [name, query, expected] of windows) {
        test(`window: ${name}`, async () => {
          const reply = await get('pro', SHARED, `?${query}`);
          assert.equal(reply.status, 200, reply.text);
          assert.deepEqual(ages(reply), expected);
          assert.deepEqual(reply.body.meta.pagination, { limit: 500, offset: 0, count: expected.length });
        });
      }

      for (const [query, limit] of [
        ['', 500],
        ['?limit=1000', 1_000],
        ['?limit=1001', 1_000],
        ['?limit=0', 1],
        ['?limit=-5', 1],
        ['?limit=2.7', 2],
        ['?limit=', 500],
        ['?limit=all', 500],
        [`?limit=${'9'.repeat(400)}`, 1_000],
      ] as const) {
        test(`${query.slice(0, 30) || 'no limit'} gives the newest ${limit}`, async () => {
          const reply = await get('basic', DENSE, query);
          assert.deepEqual(
            ages(reply),
            Array.from({ length: limit }, (_, n) => n * 1_000),
          );
          assert.deepEqual(reply.body.meta.pagination, { limit, offset: 0, count: limit });
        });
      }
    });

    describe(`${version} 400`, () => {
      for (const value of [
        'yesterday',
        '2026',
        '2026-02-30',
        '2026-13-01',
        '2026-01-01T25:00:00Z',
        '2026-01-01T12',
        '1767225600000',
        '1767225600',
        '2026-01-01T00:00:00+02:00', // the plus is a blank unless it is encoded
        '+002026-01-01T00:00:00Z',
        '2026-01-01T00:00:00Z;drop',
        '0000-01-01',
        '%00',
      ]) {
        test(`${value} is no time`, async () => {
          for (const name of ['from', 'to']) {
            const { status, body } = await get('pro', SHARED, `?${name}=${value}`);
            assert.deepEqual([status, body.error.code], [400, 'BAD_REQUEST']);
          }
        });
      }
    });
  }
});

/** The instant of that age as it is called two hours east of Greenwich. */
function offsetForm(ageMs: number): string {
  return `${new Date(NOW_MS - ageMs + 2 * HOUR_MS).toISOString().slice(0, -1)}%2B02:00`;
}
