import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import geodesic from 'geographiclib-geodesic';
import { adminOf } from '../support/admin.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres.ts';
import { endingAt, type Recorded, readRecordings, skipWithoutData } from '../support/recordings.ts';

const GOOD = ['352093081234501', '352093081234502', '352093081234503'];
const BROKEN_CLOCK = '352093081234504';

describe('real recordings', { skip: skipWithoutData }, () => {
  const tracks = new Map<string, Recorded[]>();
  let pod: Pod;
  let key: string;

  before(async () => {
    for (const [imei, track] of await readRecordings()) {
      tracks.set(imei, GOOD.includes(imei) ? endingAt(track, Date.now()) : track);
    }
    const database = await createDatabase();
    const admin = adminOf(database.url);
    await admin.account('owner@example.com');
    ({ key } = await admin.key('owner@example.com'));
    await admin.importDevices(
      'owner@example.com',
      [...GOOD, BROKEN_CLOCK].map((imei) => ({ imei })),
    );
    pod = await startPod(database.url);
  });

  after(() => pod.stop());

  const trackOf = (imei: string): Recorded[] => tracks.get(imei) as Recorded[];
  const get = async (path: string) => (await pod.get(`/api/v3/devices${path}`, key)).body.data;
  const everything = async (): Promise<string> =>
    JSON.stringify([
      await get(''),
      ...(await Promise.all(GOOD.map((imei) => get(`/${imei}/history?limit=1000`)))),
      (await pod.get('/api/v3/events?limit=200', key)).body,
    ]);

  test('every point of the good recordings is accepted, all of them in one batch', async () => {
    const batch = GOOD.flatMap(trackOf);
    const summary = await pod.points(batch);
    assert.deepEqual(summary, { accepted: batch.length, duplicates: 0, late: 0, rejected: [], ignored: [] });
  });

  for (const imei of GOOD) {
    test(`history gives ${imei} back, newest first`, async () => {
      const expected = trackOf(imei).map((point) => ({
        latitude: point.latitude,
        longitude: point.longitude,
        speed_kmh: point.speed_kmh,
        heading: point.heading,
        satellites: point.satellites,
        recorded_at: point.recorded_at,
      }));
      assert.deepEqual(await get(`/${imei}/history?limit=1000`), expected.reverse());
    });

    test(`location gives the last point of ${imei} back, and nearest finds it there`, async () => {
      const last = trackOf(imei).at(-1) as Recorded;
      assert.deepEqual(await get(`/${imei}/location`), {
        latitude: last.latitude,
        longitude: last.longitude,
        altitude_m: last.altitude_m,
        speed_kmh: last.speed_kmh,
        recorded_at: last.recorded_at,
      });
      const near = await get(`/nearest?lat=${last.latitude}&lng=${last.longitude}&limit=50`);
      assert.deepEqual([near.length, near[0].imei, near[0].distance_km], [GOOD.length, imei, 0]);
      for (const { imei: other, distance_km } of near) {
        const end = trackOf(other).at(-1) as Recorded;
        const trueKm = inverseKm(last, end);
        assert.ok(Math.abs(distance_km - trueKm) <= 1e-5 * trueKm);
      }
    });
  }

  test('sending them again, together or piece by piece, changes nothing', async () => {
    const before = await everything();
    const batch = GOOD.flatMap(trackOf);
    const again = await pod.points(batch);
    assert.deepEqual([again.accepted, again.duplicates], [0, batch.length]);
    for (let at = 0; at < batch.length; at += 100) {
      const piece = batch.slice(at, at + 100).reverse();
      assert.equal((await pod.points(piece)).duplicates, piece.length);
    }
    assert.equal(await everything(), before);
  });

  test('a clock that says 1901 is refused point by point, and costs the others nothing', async () => {
    const track = trackOf(BROKEN_CLOCK);
    const last = trackOf(GOOD[0] as string).at(-1) as Recorded;
    const good = { ...last, recorded_at: new Date(Date.parse(last.recorded_at) + 1).toISOString() };
    const summary = await pod.points([...track, good]);
    assert.deepEqual(
      summary.rejected.map(({ index, code }: { index: number; code: string }) => [index, code]),
      track.map((_, index) => [index, 'TOO_OLD']),
    );
    assert.equal(summary.accepted, 1);
    const { body } = await pod.get(`/api/v3/devices/${BROKEN_CLOCK}/location`, key);
    assert.equal(body.error.code, 'LOCATION_NOT_FOUND');
  });
});

function inverseKm(from: Recorded, to: Recorded): number {
  const { s12 } = geodesic.Geodesic.WGS84.Inverse(from.latitude, from.longitude, to.latitude, to.longitude);
  return (s12 ?? Number.NaN) / 1000;
}
