import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import { DAY_MS, HOUR_MS } from '../../src/lib/time.ts';
import { readBothVersions } from '../support/http/readBothVersions.ts';
import { manualClock } from '../support/manualClock.ts';
import { ownerPod } from '../support/ownerPod.ts';
import type { Reply } from '../support/pod.ts';

/** A noon, so that whole days reach to a noon and not to a midnight. */
const NOW_MS = Math.floor(Date.now() / DAY_MS) * DAY_MS + DAY_MS / 2;
const SHARED = '350000000000001';
const DENSE = '350000000000002';
const SILENT = '350000000000003';
/** Days of history by plan; an account without a plan has that of `default`. */
const PLANS = { basic: 30, pro: 180, default: 180, enterprise: 730 } as const;
type Plan = keyof typeof PLANS;

/** Ages of the points of the shared device, newest first. */
const AGES_MS = [
  ...[0, HOUR_MS, 30 * DAY_MS - 1, 30 * DAY_MS, 30 * DAY_MS + 1, 180 * DAY_MS, 180 * DAY_MS + 1],
  ...[400 * DAY_MS, 730 * DAY_MS],
];
const DENSE_COUNT = 1_100;

describe('GET /devices/{imei}/history', () => {
  const keys = new Map<Plan, string>();
  const { pod, admin } = ownerPod({ clock: manualClock(NOW_MS) });
  before(async () => {
    for (const plan of Object.keys(PLANS) as Plan[]) {
      const email = `${plan}@example.com`;
      await admin.account(email, { organization: 'Haulage', ...(plan === 'default' ? {} : { plan }) });
      keys.set(plan, (await admin.key(email)).key);
    }
    for (const imei of [SHARED, DENSE, SILENT])
      await admin.device('basic@example.com', imei, '--organization');
    const values = { imei: SHARED, longitude: -12.5, altitude_m: 7, heading: 359.9, satellites: 12 };
    const shared = AGES_MS.map((ageMs, n) => {
      const motion = { latitude: 41 + n / 10, speed_kmh: n + 0.5 };
      return { ...values, ...motion, recorded_at: NOW_MS - ageMs };
    });
    const place = { imei: DENSE, latitude: 10, longitude: 10 };
    const dense = Array.from({ length: DENSE_COUNT }, (_, n) => ({
      ...place,
      recorded_at: NOW_MS - n * 1_000,
    }));
    await pod.points(shared);
    await pod.points(dense);
  });

  const get = (plan: Plan, imei: string, query = ''): Promise<Reply> =>
    readBothVersions(pod, `/devices/${imei}/history${query}`, keys.get(plan));
  const agesOf = ({ body }: Reply): number[] =>
    body.data.map((point: { recorded_at: string }) => NOW_MS - Date.parse(point.recorded_at));
  const iso = (ageMs: number): string => new Date(NOW_MS - ageMs).toISOString();
  const day = (ageMs: number): string => iso(ageMs).slice(0, 10);

  test('shows every documented field of a point, and no other', async () => {
    const point = { latitude: 41, longitude: -12.5, speed_kmh: 0.5, heading: 359.9, satellites: 12 };
    assert.deepEqual((await get('pro', SHARED, '?limit=1')).body, {
      data: [{ ...point, recorded_at: iso(0) }],
      meta: { pagination: { limit: 1, offset: 0, count: 1 } },
    });
  });

  test('is empty for a device that has not reported', async () => {
    const { body } = await get('pro', SILENT);
    assert.deepEqual(body, { data: [], meta: { pagination: { limit: 500, offset: 0, count: 0 } } });
  });

  for (const [plan, days] of Object.entries(PLANS) as [Plan, number][]) {
    test(`shows a reader on the plan ${plan} ${days} days of a shared device, newest first`, async () => {
      const retained = AGES_MS.filter((ageMs) => ageMs <= days * DAY_MS);
      for (const query of ['', '?from=2001-01-01', '?from=0001-01-01&to=9999-12-31T23:59:59.999Z'])
        assert.deepEqual(agesOf(await get(plan, SHARED, query)), retained, query);
      assert.deepEqual(agesOf(await get(plan, SHARED, '?to=2001-01-01')), []);
    });
  }

  const windows: [title: string, query: string, expected: number[]][] = [
    ['from a time on, itself included', `from=${iso(HOUR_MS)}`, [0, HOUR_MS]],
    ['up to a time, itself included', `to=${iso(30 * DAY_MS + 1)}`, [30 * DAY_MS + 1, 180 * DAY_MS]],
    ['of one instant', `from=${iso(HOUR_MS)}&to=${iso(HOUR_MS)}`, [HOUR_MS]],
    ['of none between two points', `from=${iso(HOUR_MS - 1)}&to=${iso(1)}`, []],
    ['of none when from is after to', `from=${iso(0)}&to=${iso(HOUR_MS)}`, []],
    [
      'from midnight UTC of a date to that of another',
      `from=${day(31 * DAY_MS)}&to=${day(0)}`,
      AGES_MS.slice(2, 5),
    ],
    ['of all when the ends are blank and there is an offset', 'from=&to=%20&offset=3', AGES_MS.slice(0, 6)],
  ];
  for (const [title, query, expected] of windows) {
    test(`shows the points ${title}`, async () => {
      const reply = await get('pro', SHARED, `?${query}`);
      assert.deepEqual(agesOf(reply), expected);
      assert.deepEqual(reply.body.meta.pagination, { limit: 500, offset: 0, count: expected.length });
    });
  }

  for (const [query, limit] of [
    ['', 500],
    ['?limit=1001', 1_000],
  ] as const) {
    test(`shows the newest ${limit} points ${query === '' ? 'by default' : 'at most'}`, async () => {
      const reply = await get('basic', DENSE, query);
      assert.deepEqual(
        agesOf(reply),
        Array.from({ length: limit }, (_, n) => n * 1_000),
      );
    });
  }

  test('refuses a time that it cannot read with 400', async () => {
    for (const value of ['yesterday', '2026-02-30', '1767225600000', '2026-01-01T00:00:00+02:00', '%00']) {
      for (const name of ['from', 'to']) {
        const { status, body } = await get('pro', SHARED, `?${name}=${value}`);
        assert.deepEqual([status, body.error.code], [400, 'BAD_REQUEST'], value);
      }
    }
  });
});
