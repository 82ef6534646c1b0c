import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { areaApi } from '../support/http/areas.ts';
import {
  endingAt,
  type Recorded,
  readData,
  readRecordings,
  skipWithoutData,
} from '../support/ingest/recordings.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { ISTRIA_TRIPS, LAZIO_TRIP, type Visit } from './recordedVisits.ts';

const BROKEN_CLOCK = '352093081234504';
const SHIFTED = '352093081234513';
const HIKERS = 'hikers@example.com';
const COUNTY = 'county@example.com';
const AREAS_PER_IMPORT = 200;
const POINTS_PER_CALL = 40;

describe('real recordings over real places', { skip: skipWithoutData }, () => {
  const keys = new Map<string, string>();
  let recordings: Map<string, Recorded[]>;
  let pod: Pod;

  before(async () => {
    recordings = await readRecordings();
    const database = await createDatabase();
    const admin = adminOf(database.url);
    for (const email of [HIKERS, COUNTY]) {
      await admin.account(email);
      keys.set(email, (await admin.key(email)).key);
    }
    await admin.importDevices(
      HIKERS,
      [...recordings.keys()].map((imei) => ({ imei })),
    );
    await admin.device(COUNTY, SHIFTED);
    pod = await startPod(database.url);
  });

  after(() => pod.stop());

  const trackOf = (imei: string): Recorded[] => endingAt(recordings.get(imei) ?? [], Date.now());

  /** Sends a recording piece by piece, as it would have come in. */
  async function play(track: readonly Recorded[]): Promise<void> {
    for (let at = 0; at < track.length; at += POINTS_PER_CALL) {
      const piece = track.slice(at, at + POINTS_PER_CALL);
      assert.equal((await pod.points(piece)).accepted, piece.length);
    }
  }

  /** The geofence events of a device, in the order of production. */
  async function visitsOf(email: string, imei: string, startMs: number): Promise<Visit[]> {
    const query = `type=geofence&device=${imei}&limit=200`;
    const { body } = await pod.get(`/api/v3/events?${query}`, keys.get(email));
    const events: { id: number; occurred_at: string; data: Record<string, string> }[] = body.data;
    const seconds = (time: string | undefined): number => (Date.parse(time ?? '') - startMs) / 1_000;
    return events
      .sort((a, b) => a.id - b.id)
      .map(({ data, occurred_at: occurredAt }) => {
        const [at, since] = [seconds(occurredAt), seconds(data['enteredAt'])];
        assert.equal(data['staySeconds'], data['event'] === 'exit' ? at - since : undefined);
        return [at, data['event'] as Visit[1], String(data['areaName']), since];
      });
  }

  const startOf = ([first]: readonly Recorded[]): number => Date.parse(first?.recorded_at ?? '');

  for (const { imei, title, areas, visits } of ISTRIA_TRIPS) {
    test(title, async () => {
      const api = areaApi(pod, keys.get(HIKERS) ?? '');
      const ids = new Map<string, number>();
      for (const body of areas) ids.set(body.name, await api.make(body));
      const track = trackOf(imei);
      await play(track);
      assert.deepEqual(await visitsOf(HIKERS, imei, startOf(track)), visits);
      for (const [name, id] of ids) {
        const { data } = (await api.get(`/${id}/events?device=${imei}`)).body;
        const ofArea = visits.filter(([, , area]) => area === name);
        assert.deepEqual(
          data.toReversed().map(({ event }: { event: string }) => event),
          ofArea.map(([, event]) => event),
        );
      }
    });
  }

  test('a recording whose clock says 1901 makes no event', async () => {
    const track = recordings.get(BROKEN_CLOCK) ?? [];
    const [{ latitude: lat, longitude: lng }] = track as [Recorded];
    const around = { name: 'Around the hut', type: 'circle', center: { lat, lng }, radius_m: 5_000 };
    const id = await areaApi(pod, keys.get(HIKERS) ?? '').make(around);
    const summary = await pod.points(track);
    assert.deepEqual([summary.accepted, summary.rejected.length], [0, track.length]);
    const { data } = (await areaApi(pod, keys.get(HIKERS) ?? '').get(`/${id}/events`)).body;
    assert.deepEqual(data, []);
  });

  test('a walk over the Alban Hills goes from municipality to municipality', async () => {
    const api = areaApi(pod, keys.get(COUNTY) ?? '');
    const { features } = JSON.parse(await readData('lazio-municipalities.geojson'));
    for (let at = 0; at < features.length; at += AREAS_PER_IMPORT) {
      const part = features.slice(at, at + AREAS_PER_IMPORT);
      const { status, body } = await api.import({ type: 'FeatureCollection', features: part });
      assert.deepEqual([status, body.data.errors], [201, []]);
    }
    const { latitude, longitude } = LAZIO_TRIP.shift;
    const track = trackOf(LAZIO_TRIP.imei).map((point) => ({
      ...point,
      imei: SHIFTED,
      latitude: point.latitude + latitude,
      longitude: point.longitude + longitude,
    }));
    await play(track);
    assert.deepEqual(await visitsOf(COUNTY, SHIFTED, startOf(track)), LAZIO_TRIP.visits);
  });
});
