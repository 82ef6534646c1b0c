import assert from 'node:assert/strict';
import { before, describe, test } from 'node:test';
import geodesic from 'geographiclib-geodesic';
import { OWNER, ownerPod } from '../support/ownerPod.ts';
import { seededRandom } from '../support/seededRandom.ts';

/** The largest relative error of a distance that the service allows itself; below the floor, rounding counts more. */
const TOLERANCE = 1e-5;
const FLOOR_M = 1e-6;
const most = (m: number): number => m * (1 + TOLERANCE) + FLOOR_M;
const least = (m: number): number => m * (1 - TOLERANCE) - FLOOR_M;

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
const place = (n: number) => PLACES[n % PLACES.length]?.() as readonly [number, number];

const devices = (count: number, firstImei: number) =>
  Array.from({ length: count }, (_, n) => {
    const [latitude, longitude] = place(n);
    return { imei: String(firstImei + n), latitude, longitude };
  });

describe('nearest finds what GeographicLib measures', () => {
  const own = devices(450, 350_000_000_000_000);
  const shared = devices(450, 360_000_000_000_000);
  const ofAnotherMember = devices(100, 370_000_000_000_000);
  const imeis = (of: typeof own, more = {}) => of.map(({ imei }) => ({ imei, ...more }));
  const owner = ownerPod({ devices: imeis(own) });
  const { pod, admin } = owner;
  before(async () => {
    await admin.run('account:update', '--email', OWNER, '--organization', 'Haulage');
    await admin.account('member@example.com', { organization: 'Haulage' });
    const ofMember = [...imeis(shared, { organization: true }), ...imeis(ofAnotherMember)];
    await admin.importDevices('member@example.com', ofMember);
    const points = [...own, ...shared, ...ofAnotherMember];
    const summary = await pod.points(points.map((point) => ({ ...point, recorded_at: Date.now() })));
    assert.equal(summary.accepted, 1_000);
  });

  const ask = async (lat: number, lng: number, query: string): Promise<readonly Found[]> => {
    const position = `lat=${lat.toFixed(9)}&lng=${lng.toFixed(9)}`;
    const reply = await pod.get(`/api/v3/devices/nearest?${position}&${query}`, owner.key);
    assert.equal(reply.status, 200, reply.text);
    return reply.body.data;
  };

  /** Only visible devices, each once and at its true distance, in ascending order. */
  const assertTrue = (found: readonly Found[], truth: ReadonlyMap<string, number>): void => {
    let reachedKm = 0;
    for (const { imei, distance_km } of found) {
      const trueM = truth.get(imei);
      assert.ok(trueM !== undefined, `${imei} is not visible`);
      const isTrue = distance_km * 1000 <= most(trueM) && distance_km * 1000 >= least(trueM);
      assert.ok(isTrue, `${imei} is ${trueM} m away, not ${distance_km} km`);
      assert.ok(distance_km >= reachedKm, 'nearest first');
      reachedKm = distance_km;
    }
    assert.equal(new Set(found.map(({ imei }) => imei)).size, found.length, 'each device once');
  };

  for (let n = 0; n < 16; n++) {
    const [lat, lng] = place(n).map((degrees) => Number(degrees.toFixed(9))) as [number, number];
    test(`around ${lat}, ${lng}, without a radius and within one`, async () => {
      const truth = new Map<string, number>();
      for (const { imei, latitude, longitude } of [...own, ...shared])
        truth.set(imei, geodesic.Geodesic.WGS84.Inverse(lat, lng, latitude, longitude).s12 as number);
      const ascending = [...truth.values()].sort((a, b) => a - b);
      for (const limit of [1, 7, 50]) {
        const found = await ask(lat, lng, `limit=${limit}`);
        assert.equal(found.length, limit);
        assertTrue(found, truth);
        for (const [rank, { distance_km }] of found.entries())
          assert.ok(distance_km * 1000 <= most(ascending[rank] as number), `rank ${rank} is nearer in truth`);
      }
      for (const rank of [3, 20]) {
        const radiusKm = (((ascending[rank] as number) * 1.0001 + 0.001) / 1000).toFixed(12);
        const found = await ask(lat, lng, `limit=50&max_km=${radiusKm}`);
        assertTrue(found, truth);
        const radiusM = Number(radiusKm) * 1000;
        const surely = ascending.filter((m) => m <= least(radiusM)).length;
        const perhaps = ascending.filter((m) => m <= most(radiusM)).length;
        assert.ok(found.length >= Math.min(50, surely) && found.length <= perhaps);
      }
    });
  }
});
