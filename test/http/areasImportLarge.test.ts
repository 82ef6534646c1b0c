import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import { type AreaApi, type AreaPod, gist, startAreaPod } from '../support/areas.ts';
import { collection, feature } from './importBodies.ts';

const MB = 1024 * 1024;
let house: AreaPod;
let api: AreaApi;
before(async () => {
  house = await startAreaPod();
  api = await house.newAccount();
});
after(() => house.pod.stop());

describe('large and hostile bodies', () => {
  const padded = (bytes: number): string => {
    const text = JSON.stringify(feature({ name: 'A', padding: '' }));
    return text.replace('"padding":""', `"padding":"${'x'.repeat(bytes - text.length)}"`);
  };

  test('32 MB are read, one byte more is 413', async () => {
    assert.equal((await api.import(padded(32 * MB))).status, 201);
    assert.equal(gist(await api.import(padded(32 * MB + 1))), '413 PAYLOAD_TOO_LARGE');
    assert.equal((await api.import(feature({ name: 'A' }))).status, 201);
  });

  test('a body that takes all memory to read is 413; those that wait behind it and the next ones are imported', async () => {
    // Within JSON.parse, where V8 keeps to no limit of a thread and ends the process.
    const bomb = `{"type":"MultiPoint","coordinates":[${'[{}],'.repeat(5_000_000)}[0,0]]}`;
    let isRefused = false;
    const refused = api.import(bomb).finally(() => {
      isRefused = true;
    });
    while (!isRefused) assert.equal((await api.import(feature({ name: 'Behind' }))).status, 201);
    assert.equal(gist(await refused), '413 PAYLOAD_TOO_LARGE');
    assert.equal((await api.import(feature({ name: 'Next' }))).status, 201);
  });

  const hostile: [title: string, body: string, expected: string][] = [
    ['a million empty arrays', `{"geojson":[${'[],'.repeat(1_000_000)}0]}`, '422 geojson INVALID_GEOJSON'],
    ['a million features', `{"type":"FeatureCollection","features":[${'{},'.repeat(1_000_000)}0]}`, '422 '],
    [
      'a polygon of half a million points',
      `{"type":"Polygon","coordinates":[[${'[0,0],'.repeat(500_000)}[0,0]]]}`,
      '422 ',
    ],
    [
      'a Multi* of 100 000 areas',
      `{"type":"MultiPoint","coordinates":[${'[0,0],'.repeat(100_000)}[0,0]]}`,
      '422 ',
    ],
    [
      'a Multi* of 100 000 bad parts',
      `{"type":"MultiPoint","coordinates":[${'[],'.repeat(100_000)}[0]]}`,
      '422 ',
    ],
    ['a polygon of 100 000 rings', `{"type":"Polygon","coordinates":[${'[],'.repeat(100_000)}[]]}`, '422 '],
    ['100 000 levels', `{"type":"Polygon","coordinates":${'['.repeat(100_000)}`, '422 null INVALID_BODY'],
  ];
  for (const [title, body, expected] of hostile) {
    test(`${title}: ${expected}, and the next import works`, async () => {
      assert.equal(gist(await api.import(body)), expected);
      assert.equal((await api.import(feature({ name: 'A' }))).status, 201);
    });
  }

  test('200 features of 10 000 bad parts each are answered shortly, not with two million errors', async () => {
    const multi = `{"type":"Feature","properties":{"name":"A"},"geometry":{"type":"MultiPoint","coordinates":[${'[],'.repeat(9_999)}[]]}}`;
    const reply = await api.import(
      `{"type":"FeatureCollection","features":[${Array(200).fill(multi).join(',')}]}`,
    );
    assert.equal(reply.status, 422);
    assert.ok(reply.text.length < MB, `${reply.text.length} bytes`);
  });

  test('parts that all end at the antimeridian are answered as any others', async () => {
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

test('nearest is answered all the while that a maximum import runs', async () => {
  await house.admin.device('owner1@example.com', '350000000000001');
  await house.pod.points([
    { imei: '350000000000001', recorded_at: Date.now(), latitude: 41.9, longitude: 12.5 },
  ]);
  const round = (k: number) =>
    Array.from({ length: 2_001 }, (_, n) => {
      const angle = ((n % 2_000) / 2_000) * 2 * Math.PI;
      return [12 + k / 200 + Math.cos(angle) / 10, 41 + Math.sin(angle) / 10];
    });
  const features = Array.from({ length: 200 }, (_, k) =>
    feature({ name: `A${k}`, external_id: `max-${k}` }, { type: 'Polygon', coordinates: [round(k)] }),
  );
  for (const expected of [201, 200]) {
    let isDone = false;
    const importing = api.import(collection(...features)).finally(() => {
      isDone = true;
    });
    let polls = 0;
    while (!isDone) {
      const { status, body } = await house.pod.get('/api/v3/devices/nearest?lat=41.9&lng=12.5', api.key);
      assert.deepEqual([status, body.data.length], [200, 1]);
      polls++;
    }
    const { status, body } = await importing;
    assert.deepEqual([status, body.data.valid, body.data.errors], [expected, 200, []]);
    assert.ok(polls > 3, `${polls} polls`);
  }
  const id = (await api.get('?external_id=max-7')).body.data[0].id;
  assert.equal((await api.contains(id, 41, 12 + 7 / 200)).body.data.inside, true);
});
