import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type IngestService, STORED, startIngestService, wirePoint } from '../support/ingestService.ts';

const NOW_MS = Date.now();

describe('points of POST /positions', () => {
  let service: IngestService;

  before(async () => {
    service = await startIngestService();
  });

  after(() => service.pod.stop());

  const point = (imei: string, values: object = {}) => wirePoint(imei, NOW_MS, values);

  describe('200: an identity is stored once', () => {
    test('within a batch the first stands; the others count as duplicates', async () => {
      const imei = service.newDevice();
      const summary = await service.send([
        point(imei, { latitude: 1, heading: 10 }),
        point(imei, { latitude: 2, heading: 20 }),
        point(imei, { latitude: 3, recorded_at: new Date(NOW_MS).toISOString() }),
        point(imei, { latitude: 4, recorded_at: NOW_MS + 0.9 }),
      ]);
      assert.deepEqual(summary, { ...STORED, duplicates: 3 });
      const points = await service.history(imei);
      assert.deepEqual([points.length, points[0].latitude, points[0].heading], [1, 1, 10]);
      assert.equal((await service.detail(imei)).location.latitude, 1);
    });

    test('sending the newest point again with something new tells that, once, and stores no second point', async () => {
      const imei = service.newDevice();
      await service.send(point(imei, { ignition: true }));
      const again = point(imei, { latitude: 1, ignition: false, alarm: 'sos', rfid: 'card' });
      for (const one of [again, again, point(imei, { ignition: true }), again]) {
        assert.deepEqual(await service.send(one), { ...STORED, accepted: 0, duplicates: 1 });
      }
      const events = await service.read(`/events?device=${imei}`);
      assert.deepEqual(
        events.map(
          ({ type, occurred_at, data }: Record<string, { lat: number } & Record<string, unknown>>) => [
            type,
            Date.parse(String(occurred_at)),
            data?.['position'],
          ],
        ),
        ['rfid', 'alarm', 'ignition_off'].map((type) => [type, NOW_MS, { lat: 41.9, lng: 12.5 }]),
      );
      assert.equal((await service.history(imei)).length, 1);
    });

    test('sending a batch again changes nothing and counts as duplicates only', async () => {
      const [a, b] = [service.newDevice(), service.newDevice()];
      const batch = Array.from({ length: 40 }, (_, n) =>
        point(n % 2 === 0 ? a : b, {
          recorded_at: NOW_MS - (n % 20) * 30_000,
          latitude: 40 + n / 100,
          ignition: n % 3 === 0,
          alarm: n % 5 === 0 ? 'sos' : undefined,
        }),
      );
      const first = await service.send(batch);
      const before = JSON.stringify([
        await service.history(a),
        await service.history(b),
        await service.detail(a),
        await service.detail(b),
      ]);
      const events = (await service.pod.get(`/api/v3/events?limit=200&device=${a}`, service.key)).text;
      for (const again of [
        batch,
        batch.toReversed(),
        batch.map((p) => ({ ...p, latitude: 0.5, speed_kmh: 200 })),
      ]) {
        const summary = await service.send(again);
        assert.deepEqual(summary, { ...STORED, accepted: 0, duplicates: 40 });
      }
      assert.deepEqual([first.accepted, first.duplicates], [20, 20]);
      assert.equal(
        JSON.stringify([
          await service.history(a),
          await service.history(b),
          await service.detail(a),
          await service.detail(b),
        ]),
        before,
      );
      assert.equal((await service.pod.get(`/api/v3/events?limit=200&device=${a}`, service.key)).text, events);
    });

    test('a point of the time of the newest one is a duplicate', async () => {
      const imei = service.newDevice();
      await service.send(point(imei, { latitude: 1 }));
      assert.deepEqual(await service.send(point(imei, { latitude: 2 })), {
        ...STORED,
        accepted: 0,
        duplicates: 1,
      });
      assert.equal((await service.detail(imei)).location.latitude, 1);
    });
  });

  describe('200: the past does not move the present', () => {
    test('a late point is in the history, and neither in the latest position nor in the events', async () => {
      const imei = service.newDevice();
      await service.send(point(imei, { latitude: 5, ignition: false, speed_kmh: 50, odometer_km: 10 }));
      const before = await service.detail(imei);
      const summary = await service.send(
        point(imei, { recorded_at: NOW_MS - 1, latitude: 6, ignition: true, alarm: 'sos', odometer_km: 99 }),
      );
      assert.deepEqual(summary, { ...STORED, late: 1 });
      assert.deepEqual(await service.detail(imei), before);
      assert.deepEqual(
        (await service.history(imei)).map(({ latitude }: { latitude: number }) => latitude),
        [5, 6],
      );
      const events = await service.pod.get(`/api/v3/events?device=${imei}`, service.key);
      assert.deepEqual(events.body.data, []);
    });

    test('points of one batch are judged in time order, so none of them is late', async () => {
      const imei = service.newDevice();
      const ms = (n: number) => NOW_MS - n * 1_000;
      const summary = await service.send(
        [2, 0, 1, 3].map((n) => point(imei, { recorded_at: ms(n), latitude: n + 1 })),
      );
      assert.deepEqual([summary.accepted, summary.late], [4, 0]);
      assert.equal((await service.detail(imei)).location.latitude, 1);
    });

    test('a batch around the newest point: what is older is late, what is newer moves', async () => {
      const imei = service.newDevice();
      await service.send(point(imei));
      const summary = await service.send([
        point(imei, { recorded_at: NOW_MS + 2_000, latitude: 2 }),
        point(imei, { recorded_at: NOW_MS - 1_000 }),
        point(imei, { recorded_at: NOW_MS + 1_000 }),
        point(imei),
        point(imei, { recorded_at: NOW_MS - 2_000 }),
      ]);
      assert.deepEqual(summary, { ...STORED, accepted: 4, late: 2, duplicates: 1 });
      assert.equal((await service.detail(imei)).location.latitude, 2);
    });
  });

  describe('200: what is missing', () => {
    /** 0.01° of latitude at the equator is 1105.74 m: in 60 s that is 66.34 km/h. */
    const KMH = 66.34;
    const speeds = async (imei: string): Promise<number[]> =>
      (await service.history(imei))
        .map(({ speed_kmh }: { speed_kmh: number }) => Math.round(speed_kmh * 100) / 100)
        .reverse();
    const step = (imei: string, minute: number, values: object = {}) =>
      point(imei, {
        recorded_at: NOW_MS + (minute - 30) * 60_000,
        latitude: 0.1 + minute / 100,
        longitude: 10,
        ...values,
      });

    test('a speed is derived from the previous point when that is at most 10 minutes older, else it is 0', async () => {
      const imei = service.newDevice();
      await service.send([step(imei, 0), step(imei, 1), step(imei, 11)]);
      await service.send(step(imei, 12));
      await service.send(step(imei, 22.01));
      assert.deepEqual(await speeds(imei), [0, KMH, KMH, KMH, 0]);
      assert.equal((await service.detail(imei)).location.speed_kmh, 0);
    });

    test('the speed of a late point too, from its own predecessor, stored or in the batch', async () => {
      const imei = service.newDevice();
      await service.send([step(imei, 0, { speed_kmh: 1 }), step(imei, 20, { speed_kmh: 2 })]);
      await service.send([step(imei, 16), step(imei, 15), step(imei, 2)]);
      assert.deepEqual(await speeds(imei), [1, KMH, 0, KMH, 2]);
      // Minute 15 is stored where it was; a repeat of it elsewhere must not be what minute 15.5 is measured from.
      await service.send([step(imei, 15, { latitude: 50 }), step(imei, 15.5)]);
      assert.deepEqual(await speeds(imei), [1, KMH, 0, KMH, KMH, 2]);
    });

    test('the speed of a late point, from a predecessor of 10 minutes ago and no older', async () => {
      const imei = service.newDevice();
      await service.send([step(imei, 0, { speed_kmh: 1 }), step(imei, 30, { speed_kmh: 2 })]);
      await service.send(step(imei, 10));
      await service.send(step(imei, 20.01));
      assert.deepEqual(await speeds(imei), [1, KMH, 0, 2]);
    });

    test('a reported speed stands, 0 too; an impossible one is derived', async () => {
      const imei = service.newDevice();
      await service.send([step(imei, 0), step(imei, 1, { speed_kmh: 0 }), step(imei, 2, { speed_kmh: -3 })]);
      assert.deepEqual(await speeds(imei), [0, 0, KMH]);
    });

    test('altitude, heading and satellites are 0', async () => {
      const imei = service.newDevice();
      await service.send([
        point(imei, { altitude_m: 9, heading: 9, satellites: 9 }),
        point(imei, { recorded_at: NOW_MS + 1 }),
      ]);
      const [newest] = await service.history(imei);
      assert.deepEqual([newest.heading, newest.satellites], [0, 0]);
      const location = (await service.pod.get(`/api/v2/devices/${imei}/location`, service.key)).body.data;
      assert.equal(location.altitude_m, 0);
    });

    test('the odometer keeps its last value and is null before the first', async () => {
      const imei = service.newDevice();
      const odometer = async (recorded_at: number, odometer_km?: number): Promise<number | null> => {
        await service.send(point(imei, { recorded_at, odometer_km }));
        return (await service.detail(imei)).odometer_km;
      };
      assert.equal(await odometer(NOW_MS), null);
      assert.equal(await odometer(NOW_MS + 1, 12.25), 12.25);
      assert.equal(await odometer(NOW_MS + 2), 12.25);
      assert.equal(await odometer(NOW_MS + 3, 0), 0);
    });
  });

  test('200: a device that was created elsewhere a moment ago is known', async () => {
    const imei = '350000000077777';
    const before = await service.send(point(imei));
    assert.deepEqual(
      before.rejected.map(({ code }) => code),
      ['UNKNOWN_DEVICE'],
    );
    await service.admin.device('owner@example.com', imei);
    assert.deepEqual(await service.send(point(imei)), STORED);
  });
});
