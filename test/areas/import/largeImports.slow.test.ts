import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { areaPod, gist } from '../../support/http/areas.ts';
import { OWNER } from '../../support/ownerPod.ts';
import { IS_TORTURE } from '../../support/torture.ts';
import { polygon } from '../reads/geojson.ts';
import { collection, feature } from './importBodies.ts';

const MB = 1024 * 1024;
/** Of each area of the largest import; as many as there may be under torture. */
const VERTICES = IS_TORTURE ? 2_000 : 500;
/** Leaves the processor to the import that is polled beside. */
const PAUSE_MS = 20;
const service = areaPod();
const { api } = service;

describe('an import', () => {
  const padded = (bytes: number): string => {
    const text = JSON.stringify(feature({ name: 'A', padding: '' }));
    return text.replace('"padding":""', `"padding":"${'x'.repeat(bytes - text.length)}"`);
  };

  test('of 32 MB is read, and of one byte more refused with 413', async () => {
    assert.equal((await api.import(padded(32 * MB))).status, 201);
    assert.equal(gist(await api.import(padded(32 * MB + 1))), '413 PAYLOAD_TOO_LARGE');
    assert.equal((await api.import(feature({ name: 'A' }))).status, 201);
  });

  test('that takes all memory to read is refused with 413, and those that wait behind it are made', async () => {
    // Within JSON.parse, where V8 keeps to no limit of a thread and ends the process.
    const bomb = `{"type":"MultiPoint","coordinates":[${'[{}],'.repeat(5_000_000)}[0,0]]}`;
    let isRejected = false;
    const rejected = api.import(bomb).finally(() => {
      isRejected = true;
    });
    while (!isRejected) {
      assert.equal((await api.import(feature({ name: 'Behind' }))).status, 201);
      await sleep(PAUSE_MS);
    }
    assert.equal(gist(await rejected), '413 PAYLOAD_TOO_LARGE');
    assert.equal((await api.import(feature({ name: 'Next' }))).status, 201);
  });

  const crowded = `{"type":"Feature","properties":{"name":"A"},"geometry":{"type":"MultiPoint","coordinates":[${'[],'.repeat(9_999)}[]]}}`;
  const large: [title: string, body: string, expected: string][] = [
    ['a million empty arrays', `{"geojson":[${'[],'.repeat(1_000_000)}0]}`, '422 geojson INVALID_GEOJSON'],
    ['a million features', `{"type":"FeatureCollection","features":[${'{},'.repeat(1_000_000)}0]}`, '422 '],
    [
      'a polygon of half a million points',
      `{"type":"Polygon","coordinates":[[${'[0,0],'.repeat(500_000)}[0,0]]]}`,
      '422 ',
    ],
    ['100 000 parts', `{"type":"MultiPoint","coordinates":[${'[0,0],'.repeat(100_000)}[0,0]]}`, '422 '],
    ['100 000 rings', `{"type":"Polygon","coordinates":[${'[],'.repeat(100_000)}[]]}`, '422 '],
    ['100 000 levels', `{"type":"Polygon","coordinates":${'['.repeat(100_000)}`, '422 null INVALID_BODY'],
    [
      '200 features of 10 000 bad parts',
      `{"type":"FeatureCollection","features":[${Array(200).fill(crowded).join(',')}]}`,
      '422 ',
    ],
  ];
  for (const [title, body, expected] of large) {
    test(`of ${title} is refused in less than a megabyte, and the next one works`, async () => {
      const reply = await api.import(body);
      assert.equal(gist(reply), expected);
      assert.ok(reply.text.length < MB, `${reply.text.length} bytes`);
      assert.equal((await api.import(feature({ name: 'A' }))).status, 201);
    });
  }

  test('of parts that all end at the antimeridian is answered like any other', async () => {
    const touching = Array.from({ length: 20_000 }, (_, n) => {
      const [south, north] = [-80 + n * 0.008, -80 + n * 0.008 + 0.004];
      const edge = n % 2 === 0 ? 180 : -180;
      const inner = n % 2 === 0 ? 179 : -179;
      return [
        [
          [edge, south],
          [edge, north],
          [inner, north],
          [inner, south],
          [edge, south],
        ],
      ];
    });
    const reply = await api.import(feature({ name: 'A' }, { type: 'MultiPolygon', coordinates: touching }));
    assert.ok([201, 422].includes(reply.status));
  });
});

test('nearest is answered while an import of 200 large areas runs', async () => {
  await service.admin.device(OWNER, '350000000000001');
  await service.pod.points([
    { imei: '350000000000001', recorded_at: Date.now(), latitude: 41.9, longitude: 12.5 },
  ]);
  const round = (k: number) =>
    Array.from({ length: VERTICES + 1 }, (_, n) => {
      const angle = ((n % VERTICES) / VERTICES) * 2 * Math.PI;
      return [12 + k / 200 + Math.cos(angle) / 10, 41 + Math.sin(angle) / 10];
    });
  const features = Array.from({ length: 200 }, (_, k) =>
    feature({ name: `A${k}`, external_id: `max-${k}` }, polygon(round(k))),
  );
  for (const expected of [201, 200]) {
    let isDone = false;
    const importing = api.import(collection(...features)).finally(() => {
      isDone = true;
    });
    let polls = 0;
    while (!isDone) {
      const { status, body } = await service.pod.get('/api/v3/devices/nearest?lat=41.9&lng=12.5', api.key);
      assert.deepEqual([status, body.data.length], [200, 1]);
      polls++;
      await sleep(PAUSE_MS);
    }
    const { status, body } = await importing;
    assert.deepEqual([status, body.data.valid, body.data.errors], [expected, 200, []]);
    assert.ok(polls > 3, `${polls} polls`);
  }
  const id = (await api.get('?external_id=max-7')).body.data[0].id;
  assert.equal((await api.contains(id, 41, 12 + 7 / 200)).body.data.inside, true);
});
