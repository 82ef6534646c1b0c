import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import geodesic from 'geographiclib-geodesic';
import { adminOf } from '../support/admin.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';
import { seededRandom } from '../support/seededRandom.ts';

/** The largest error of a distance that the service allows itself, relative. */
const TOLERANCE = 1e-5;
/** Below this, in metres, rounding counts for more than the formula. */
const FLOOR_M = 1e-6;
const QUERIES = 40;

interface Spot {
  readonly imei: string;
  readonly lat: number;
  readonly lng: number;
}

interface Found {
  readonly imei: string;
  readonly distance_km: number;
}

const random = seededRandom(20_261_120);
const between = (low: number, high: number): number => low + random() * (high - low);

/** Where fleets are hard to search: everywhere, around the antimeridian, at the poles, in a town, on one spot. */
const PLACES: readonly (() => readonly [lat: number, lng: number])[] = [
  () => [(Math.asin(between(-1, 1)) * 180) / Math.PI, between(-180, 180)],
  () => [between(-60, 60), random() < 0.5 ? between(179.9, 180) : between(-180, -179.9)],
  () => [between(-0.001, 0.001) + 16.5, random() < 0.5 ? 180 : -180],
  () => [between(89.9, 90), between(-180, 180)],
  () => [between(-90, -89.999), between(-180, 180)],
  () => [random() < 0.5 ? 90 : -90, between(-180, 180)],
  () => [between(41.8, 42), between(12.4, 12.6)],
  () => [41.9, 12.5],
];

const place = (n: number): readonly [number, number] =>
  (PLACES[n % PLACES.length] as (typeof PLACES)[number])();

function spots(count: number, firstImei: number): Spot[] {
  return Array.from({ length: count }, (_, n) => {
    const [lat, lng] = place(n);
    return { imei: String(firstImei + n), lat, lng };
  });
}

describe('nearest against every device measured with GeographicLib', () => {
  const own = spots(900, 350_000_000_000_000);
  const shared = spots(900, 360_000_000_000_000);
  const ofAnotherMember = spots(200, 370_000_000_000_000);
  const visible = [...own, ...shared];
  let pod: Pod;
  let key: string;

  before(async () => {
    const database = await createDatabase();
    const admin = adminOf(database.url);
    for (const email of ['owner@example.com', 'member@example.com']) {
      await admin.account(email, { organization: 'Haulage' });
    }
    ({ key } = await admin.key('owner@example.com'));
    await admin.importDevices(
      'owner@example.com',
      own.map(({ imei }) => ({ imei })),
    );
    await admin.importDevices('member@example.com', [
      ...shared.map(({ imei }) => ({ imei, organization: true })),
      ...ofAnotherMember.map(({ imei }) => ({ imei })),
    ]);
    pod = await startPod(database.url);
    const summary = await pod.points(
      [...visible, ...ofAnotherMember].map(({ imei, lat, lng }) => ({
        imei,
        recorded_at: Date.now(),
        latitude: lat,
        longitude: lng,
      })),
    );
    assert.equal(summary.accepted, 2_000);
  });

  after(() => pod.stop());

  const measured = (lat: number, lng: number): Map<string, number> =>
    new Map(
      visible.map((spot) => [
        spot.imei,
        geodesic.Geodesic.WGS84.Inverse(lat, lng, spot.lat, spot.lng).s12 as number,
      ]),
    );

  const ask = async (lat: number, lng: number, query: string): Promise<readonly Found[]> => {
    const reply = await pod.get(
      `/api/v3/devices/nearest?lat=${lat.toFixed(9)}&lng=${lng.toFixed(9)}&${query}`,
      key,
    );
    assert.equal(reply.status, 200, reply.text);
    return reply.body.data;
  };

  /** Only visible devices, each at its true distance, in ascending order; returns how far the answer reaches. */
  const judge = (found: readonly Found[], truth: ReadonlyMap<string, number>): void => {
    let reachedKm = 0;
    for (const { imei, distance_km } of found) {
      const trueM = truth.get(imei);
      assert.ok(trueM !== undefined, `${imei} is not visible`);
      assert.ok(
        Math.abs(distance_km * 1000 - trueM) <= TOLERANCE * trueM + FLOOR_M,
        `${imei} is ${trueM} m away, not ${distance_km} km`,
      );
      assert.ok(distance_km >= reachedKm, 'nearest first');
      reachedKm = distance_km;
    }
    assert.equal(new Set(found.map(({ imei }) => imei)).size, found.length, 'each device once');
  };

  for (let n = 0; n < QUERIES; n++) {
    const [exactLat, exactLng] = place(n);
    const lat = Number(exactLat.toFixed(9));
    const lng = Number(exactLng.toFixed(9));

    test(`around ${lat}, ${lng}: the nearest ones, and all within a radius`, async () => {
      const truth = measured(lat, lng);
      const ascending = [...truth.values()].sort((a, b) => a - b);
      for (const limit of [1, 7, 50]) {
        const found = await ask(lat, lng, `limit=${limit}`);
        assert.equal(found.length, limit);
        judge(found, truth);
        found.forEach(({ distance_km }, rank) => {
          const trueM = ascending[rank] as number;
          assert.ok(
            distance_km * 1000 <= trueM * (1 + TOLERANCE) + FLOOR_M,
            `rank ${rank} is nearer in truth`,
          );
        });
      }
      for (const rank of [3, 20]) {
        const radiusKm = ((ascending[rank] as number) * 1.0001 + 0.001) / 1000;
        const found = await ask(lat, lng, `limit=50&max_km=${radiusKm.toFixed(12)}`);
        judge(found, truth);
        const radiusM = Number(radiusKm.toFixed(12)) * 1000;
        const surely = ascending.filter((m) => m <= radiusM * (1 - TOLERANCE) - FLOOR_M).length;
        const perhaps = ascending.filter((m) => m <= radiusM * (1 + TOLERANCE) + FLOOR_M).length;
        assert.ok(found.length >= Math.min(50, surely) && found.length <= perhaps);
      }
    });
  }
});
