import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { distanceM } from '../../src/geo/wgs84.ts';
import { DAY_MS, HOUR_MS } from '../../src/lib/time.ts';
import { boxAllRows } from '../support/history/boxAllRows.ts';
import { packPoints } from '../support/history/packPoints.ts';
import { ownerPod } from '../support/ownerPod.ts';
import { request } from '../support/pod.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { runs } from '../support/torture.ts';

const NOW_MS = Math.floor(Date.now() / 60_000) * 60_000;
const FIRST_MS = NOW_MS - 9 * DAY_MS;
const DEVICES = 12;
const FOREIGN = '350000000000099';
/** East of the Fiji islands: the circle lies on both sides of 180°. */
const CENTRE = { lat: -17, lng: 179.999 };
const RADIUS_M = 700;
const iso = (ms: number) => new Date(ms).toISOString();
const imeiOf = (n: number) => String(350000000000001 + n);

interface Point {
  readonly imei: string;
  readonly recorded_at: number;
  readonly latitude: number;
  readonly longitude: number;
}

/** Walks around the centre, over 180° and back, with pauses. */
function walks(): Point[] {
  const random = seededRandom(31);
  const points: Point[] = [];
  for (let n = 0; n < DEVICES; n++) {
    let [lat, lng] = [CENTRE.lat + (random() - 0.5) * 0.05, CENTRE.lng + (random() - 0.5) * 0.05];
    for (let ms = FIRST_MS + n * HOUR_MS; ms < NOW_MS - HOUR_MS; ) {
      lat += (random() - 0.5) * 0.004 - (lat - CENTRE.lat) * 0.05;
      lng += (random() - 0.5) * 0.004 - (lng - CENTRE.lng) * 0.05;
      const longitude = lng > 180 ? lng - 360 : lng;
      points.push({ imei: imeiOf(n), recorded_at: ms, latitude: lat, longitude });
      ms += random() < 0.05 ? Math.floor(11 * HOUR_MS * random()) : 120_000 + Math.floor(random() * 600_000);
    }
  }
  return points;
}

/** A point at the centre in the middle of each long pause of the last days: nothing else was recorded for hours around it. */
function inPauses(points: readonly Point[]): Point[] {
  const recent = points.filter(({ recorded_at: ms }) => ms > NOW_MS - 2.5 * DAY_MS);
  const found = recent.flatMap(({ imei, recorded_at: ms }, n) => {
    const next = recent[n + 1];
    if (next?.imei !== imei || next.recorded_at - ms < 5 * HOUR_MS) return [];
    const middleMs = Math.floor((ms + next.recorded_at) / 2);
    return [{ imei, recorded_at: middleMs, latitude: CENTRE.lat, longitude: CENTRE.lng }];
  });
  assert.ok(found.length > 3, 'there are pauses');
  return found;
}

interface Item {
  readonly device: { readonly imei: string };
  readonly closest_m: number;
  readonly closest_at: string;
}

const distances = new WeakMap<Point, number>();

/** From the centre. */
function awayM(point: Point): number {
  const metres = distances.get(point) ?? distanceM(CENTRE.lat, CENTRE.lng, point.latitude, point.longitude);
  distances.set(point, metres);
  return metres;
}

/** Looks at every point of every device. */
function naivePresences(points: readonly Point[], fromMs: number, toMs: number) {
  const found = [];
  for (const [imei, own] of Map.groupBy(points, (each) => each.imei)) {
    const sorted = own
      .filter(({ recorded_at: ms }) => ms >= fromMs && ms <= toMs)
      .toSorted((a, b) => a.recorded_at - b.recorded_at);
    const away = sorted.map(awayM);
    const inside = sorted.map((_, n) => n).filter((n) => (away[n] as number) <= RADIUS_M);
    const [first, last] = [inside[0], inside.at(-1)];
    if (first === undefined || last === undefined) continue;
    const at = (n: number) => (sorted[n] as Point).recorded_at;
    let ms = 0;
    for (const n of inside) {
      const isAgain = n > 0 && (away[n - 1] as number) <= RADIUS_M;
      const since = isAgain ? at(n) - at(n - 1) : 0;
      if (since <= 600_000) ms += since;
    }
    const closest = inside.reduce((a, b) => ((away[b] as number) < (away[a] as number) ? b : a));
    found.push({
      ...{
        imei,
        first_at: iso(at(first)),
        last_at: iso(at(last)),
        points: inside.length,
        seconds: ms / 1_000,
      },
      ...{ closest_m: away[closest] as number, closest_at: iso(at(closest)) },
    });
  }
  return found.sort((a, b) =>
    a.first_at < b.first_at || (a.first_at === b.first_at && a.imei < b.imei) ? -1 : 1,
  );
}

describe('GET /presence', () => {
  const points = walks();
  let otherKey = '';
  const devices = Array.from({ length: DEVICES }, (_, n) => ({ imei: imeiOf(n), name: `Vehicle ${n}` }));
  const owner = ownerPod({ devices }, async ({ pod, admin }) => {
    await admin.account('other@example.com');
    await admin.device('other@example.com', FOREIGN);
    otherKey = (await admin.key('other@example.com')).key;
    const foreign = { imei: FOREIGN, recorded_at: NOW_MS - 5 * DAY_MS, latitude: CENTRE.lat, longitude: 180 };
    const all = [...points, foreign];
    for (let at = 0; at < all.length; at += 5_000) await pod.points(all.slice(at, at + 5_000));
  });
  const circle = `lat=${CENTRE.lat}&lng=${CENTRE.lng}&radius_m=${RADIUS_M}`;
  const ask = (query: string, key = owner.key) => owner.pod.get(`/api/v3/presence?${query}`, key);
  const window = (fromMs: number, toMs: number) => `&from=${iso(fromMs)}&to=${iso(toMs)}`;
  const random = seededRandom(32);
  const windows = Array.from({ length: runs(3) }, () => {
    const fromMs = FIRST_MS + Math.floor(random() * 8 * DAY_MS);
    return { fromMs, toMs: fromMs + Math.floor(random() ** 2 * 8 * DAY_MS) };
  });
  const everything = { fromMs: FIRST_MS, toMs: NOW_MS };

  async function assertAll(stored: readonly Point[], hint: string): Promise<string[]> {
    const bodies: string[] = [];
    for (const { fromMs, toMs } of [everything, ...windows]) {
      const { status, body, text } = await ask(`${circle}${window(fromMs, toMs)}`);
      assert.equal(status, 200, text);
      const items = body.data as Item[];
      const found = items.map(({ device, ...item }) => ({ imei: device.imei, ...item }));
      const expected = naivePresences(stored, fromMs, toMs);
      assert.deepEqual(found, expected, `${hint}, ${iso(fromMs)} to ${iso(toMs)}`);
      assert.equal(body.meta.total, items.length);
      bodies.push(text);
    }
    return bodies;
  }

  test('finds what a look at every point finds, packed or not, and late points too', async () => {
    const before = await assertAll(points, 'rows');
    assert.ok(JSON.parse(before[0] as string).data.length > DEVICES / 2, 'many devices were there');
    await boxAllRows(owner.sql, NOW_MS - 3 * DAY_MS + HOUR_MS);
    assert.deepEqual(await assertAll(points, 'rows with boxes'), before);
    assert.ok((await packPoints(owner.sql)).points > points.length / 2, 'most points are packed');
    assert.deepEqual(await assertAll(points, 'packed'), before);
    const late = Array.from({ length: 200 }, () => {
      const { imei, recorded_at: ms } = points[Math.floor(random() * points.length)] as Point;
      return {
        imei,
        recorded_at: ms + 7_000,
        latitude: CENTRE.lat + (random() - 0.5) * 0.02,
        longitude: 180 - 0.001 - random() * 0.01,
      };
    });
    late.push(...inPauses(points));
    await owner.pod.points(late);
    // Of points with the same time the first one stands.
    const byTime = [...late.toReversed(), ...points].map(
      (each) => [`${each.imei} ${each.recorded_at}`, each] as const,
    );
    const stored = [...new Map(byTime).values()];
    await assertAll(stored, 'late points');
    // Without boxes nobody looks at the rows of their time: the answers above came from them.
    await owner.sql`delete from row_box`;
    const { body } = await ask(`${circle}${window(NOW_MS - 12 * HOUR_MS, NOW_MS - 2 * HOUR_MS)}`);
    assert.deepEqual(body.data, []);
  });

  test('takes an area of the caller, whose closest point is the deepest', async () => {
    const yard = { name: 'Yard', type: 'circle', center: CENTRE, radius_m: RADIUS_M };
    const { body } = await request(`${owner.pod.api}/api/v3/areas`, {
      method: 'POST',
      headers: { 'X-API-Key': owner.key, 'Content-Type': 'application/json' },
      body: JSON.stringify(yard),
    });
    const id = body.data.id as number;
    const wide = window(everything.fromMs, everything.toMs);
    const [byArea, byCircle] = [await ask(`area_id=${id}${wide}`), await ask(`${circle}${wide}`)];
    const withoutClosest = (items: Item[]) => items.map(({ closest_m: _, closest_at: __, ...item }) => item);
    assert.deepEqual(withoutClosest(byArea.body.data), withoutClosest(byCircle.body.data));
    for (const [n, item] of (byArea.body.data as Item[]).entries()) {
      const { closest_m: centreM } = byCircle.body.data[n] as Item;
      assert.ok(Math.abs(item.closest_m - (centreM - RADIUS_M)) < 1e-3, `${item.closest_m}, ${centreM}`);
    }
    assert.equal((await ask(`area_id=${id}${wide}`, otherKey)).status, 404, 'a foreign area is not there');
  });

  test('shows each account its own devices only', async () => {
    const { body } = await ask(`${circle}${window(FIRST_MS, NOW_MS)}`, otherKey);
    assert.deepEqual(
      (body.data as Item[]).map(({ device }) => device.imei),
      [FOREIGN],
    );
  });

  test('lists as many as asked for, counts all, and looks at the last 24 hours by default', async () => {
    const { body } = await ask(`${circle}${window(FIRST_MS, NOW_MS)}&limit=2`);
    assert.equal(body.data.length, 2);
    assert.ok(body.meta.total > 2);
    const { query } = (await ask(circle)).body.meta;
    assert.equal(Date.parse(query.to) - Date.parse(query.from), DAY_MS);
    assert.equal(query.limit, 50);
  });

  const REFUSED: readonly [query: string, message: RegExp][] = [
    ['', /either lat, lng and radius_m, or area_id/],
    ['area_id=1&lat=1', /either lat, lng and radius_m, or area_id/],
    ['lat=91&lng=1&radius_m=5', /lat must be/],
    ['lat=1&radius_m=5', /lat must be/],
    ['lat=1&lng=1', /radius_m must be/],
    ['lat=1&lng=1&radius_m=0.5', /radius_m must be/],
    ['lat=1&lng=1&radius_m=100001', /radius_m must be/],
    ['area_id=x', /area_id must be/],
    ['lat=1&lng=1&radius_m=5&from=nonsense', /ISO 8601/],
    [`lat=1&lng=1&radius_m=5${window(NOW_MS - 31 * DAY_MS - 1, NOW_MS)}`, /31 days/],
    ['lat=1&lat=1&lng=1&radius_m=5', /./],
  ];
  test('answers 400 to what it cannot read', async () => {
    for (const [query, message] of REFUSED) {
      const { status, body } = await ask(query);
      assert.deepEqual([status, body.error.code], [400, 'BAD_REQUEST'], query);
      assert.match(body.error.message, message);
    }
  });

  test('needs read_history_summary', async () => {
    const { key } = await owner.admin.key('owner@example.com', { scopes: 'read_history' });
    assert.equal((await ask(circle, key)).status, 403);
  });
});
