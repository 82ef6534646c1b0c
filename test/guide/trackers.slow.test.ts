import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { formatIso } from '../../src/lib/time.ts';
import { type IngestService, startIngestService } from '../support/ingest/ingestService.ts';
import { INGEST_TOKEN, request } from '../support/pod.ts';
import { guideBlock } from './guide.ts';

// What a Traccar server sends that is set up as the guide says.

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
            attributes: { totalDistance: 18_250_300 },
            deviceId: 1,
            protocol: 'teltonika',
            fixTime: at.replace('Z', '+00:00'),
            valid: true,
            latitude: 41.9,
            longitude: 12.5,
            speed: 10,
            course: 90,
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
