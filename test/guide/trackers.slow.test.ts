import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { formatIso } from '../../src/lib/time.ts';
import { type IngestService, startIngestService } from '../support/ingest/ingestService.ts';
import { INGEST_TOKEN, request } from '../support/pod.ts';
import { guideBlock } from './guide.ts';

// What a Traccar server that is set up as the guide says sends, and the phone app in its versions.

let service: IngestService;
before(async () => {
  service = await startIngestService();
});
after(() => service.pod.stop());

const atMs = Math.floor(Date.now() / 1000) * 1000 - 60_000;
const at = formatIso(atMs);

describe('the traccar.xml of the guide', () => {
  const entries = Object.fromEntries(
    [...guideBlock('traccar.xml').matchAll(/<entry key='([^']+)'>([^<]+)<\/entry>/g)].map(
      ([, key = '', value = '']) => [key, value],
    ),
  );

  test('has only keys that Traccar reads for position forwarding', () => {
    // traccar.org/forward
    const known = ['url', 'type', 'header', 'retry.enable', 'retry.delay', 'retry.count', 'retry.limit'];
    assert.deepEqual(Object.keys(entries).sort(), known.map((name) => `forward.${name}`).sort());
    assert.equal(entries['forward.type'], 'json');
    // Each wait is twice the one before: minutes, not hours and not moments.
    const seconds =
      Number(entries['forward.retry.delay']) * 2 ** Number(entries['forward.retry.count']) * 1e-3;
    assert.ok(seconds > 600 && seconds < 3_600);
  });

  test('makes a server send what is taken', async () => {
    const imei = service.newDevice();
    // Lines of the header are split at their first colon and trimmed.
    const [name = '', value = ''] = (entries['forward.header'] ?? '')
      .split(/:(.*)/)
      .map((part) => part.trim());
    const { status, body } = await request(
      new URL(new URL(entries['forward.url'] ?? '').pathname, service.pod.ingest).href,
      {
        method: 'POST',
        headers: { [name]: value.replace('TOKEN', INGEST_TOKEN), 'Content-Type': 'application/json' },
        body: JSON.stringify({
          position: {
            id: 0,
            attributes: { batteryLevel: 80, distance: 12.1, totalDistance: 18_250_300, motion: true },
            deviceId: 1,
            protocol: 'teltonika',
            serverTime: at.replace('Z', '+00:00'),
            deviceTime: at.replace('Z', '+00:00'),
            fixTime: at.replace('Z', '+00:00'),
            valid: true,
            latitude: 41.9,
            longitude: 12.5,
            altitude: 46,
            speed: 10,
            course: 90,
            address: null,
            accuracy: 0,
            network: null,
            geofenceIds: null,
          },
          device: { id: 1, attributes: {}, groupId: 0, name: 'Van', uniqueId: imei, status: 'online' },
        }),
      },
    );
    assert.deepEqual([status, body.data.accepted, body.data.ignored], [200, 1, []]);
    const { location, odometer_km } = await service.detail(imei);
    assert.deepEqual([location.speed_kmh, location.recorded_at, odometer_km], [18.52, at, 18_250.3]);
  });
});

describe('the phone app Traccar Client', () => {
  const url = () => `${service.pod.ingest}/osmand?token=${INGEST_TOKEN}`;
  const seconds = atMs / 1000;
  const versions: readonly [
    version: string,
    sent: (imei: string) => [url: string, init: RequestInit],
    speedKmh: number,
  ][] = [
    [
      '8, a query',
      (imei) => [
        `${url()}&id=${imei}&timestamp=${seconds}&lat=41.9&lon=12.5&speed=10.0&bearing=90.0&altitude=46.0&accuracy=5.0&batt=93.0`,
        { method: 'POST' },
      ],
      18.52,
    ],
    [
      '9, JSON',
      (imei) => [
        url(),
        {
          method: 'POST',
          headers: { 'Content-Type': 'application/json' },
          body:
            `{"location":{"timestamp": "${at}","coords": {"latitude": 41.9,"longitude": 12.5,"accuracy": 4.32,"speed": 5.0,` +
            `"heading": 90,"altitude": 46},"is_moving": true,"odometer": 0,"event": "motionchange","battery": {"level": 0.88,` +
            `"is_charging": false},"activity": {"type": "still"},"extras": {},` +
            `"_": "&id=${imei}&lat=41.9&lon=12.5&timestamp=${at}&"},"device_id":"${imei}"}`,
        },
      ],
      18, // metres per second
    ],
    [
      '10, a form',
      (imei) => [
        url(),
        {
          method: 'POST',
          headers: { 'Content-Type': 'application/x-www-form-urlencoded; charset=UTF-8' },
          body: `id=${imei}&lat=41.9&lon=12.5&timestamp=${seconds}&accuracy=4.3&altitude=46.0&speed=10.0&bearing=90.0&batt=88.0&charge=false`,
        },
      ],
      18.52,
    ],
  ];
  for (const [version, sent, speedKmh] of versions) {
    test(`version ${version}`, async () => {
      const imei = service.newDevice();
      const reply = await request(...sent(imei));
      assert.deepEqual([reply.status, reply.body.data?.accepted], [200, 1], reply.text);
      const { location } = await service.detail(imei);
      assert.deepEqual(
        [location.latitude, location.longitude, location.speed_kmh, location.recorded_at],
        [41.9, 12.5, speedKmh, at],
      );
    });
  }
});
