import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { type AreaGeometry, areaMeasures, toVertices } from '../../src/areas/area.ts';
import { AreaCatalog } from '../../src/areas/areaCatalog.memory.ts';
import { areasContainingRoutes } from '../../src/areas/areasContaining.routes.ts';
import { toShape } from '../../src/areas/shape.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import { nearestRoute } from '../../src/devices/nearest.routes.ts';
import { nearestBatchRoute } from '../../src/devices/nearestBatch.routes.ts';
import type { Answer } from '../../src/http/answer.ts';
import { BulkCalls } from '../../src/http/bulkCalls.ts';
import { AtOnce, WorkTurns } from '../../src/lib/workTurns.ts';
import { fieldsOf, imeiOf, positionAt } from '../support/devices.ts';
import { RouteCalls, readPieces } from '../support/http/routeCalls.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { IS_TORTURE } from '../support/torture.ts';

const SEED = Number(process.env['FLEET_SEED'] ?? (IS_TORTURE ? Date.now() % 1_000_000 : 1));
const BATCHES = IS_TORTURE ? 1_000 : 15;
const POINTS = IS_TORTURE ? 1_000 : 60;
const DEVICES = 3_000;
const AREAS = 150;
/** A private world, a shared one, and a stranger's. */
const WORLDS = [1, 2, 3];
const SEEN = [1, 2];
const NOW_MS = 1_700_000_000_000;

const random = seededRandom(SEED);
const between = (low: number, high: number): number => low + random() * (high - low);
const oneOf = <T>(values: readonly T[]): T => values[Math.floor(random() * values.length)] as T;
const rounded = (value: number): number => Number(value.toFixed(6));

/** A few spots that many devices share, a town, both sides of 180°, a pole, or anywhere. */
function anyPlace(): { lat: number; lng: number } {
  const [lat, lng] = oneOf([
    () =>
      oneOf([
        [41.9, 12.5],
        [0, 180],
        [-90, 0],
        [41.9, 12.50001],
      ]),
    () => [between(41.8, 42), between(12.4, 12.6)],
    () => [between(-17, -16), random() < 0.5 ? between(179.9, 180) : between(-180, -179.9)],
    () => [90, between(-180, 180)],
    () => [between(-90, 90), between(-180, 180)],
  ] as const)() as [number, number];
  return { lat: rounded(lat), lng: rounded(lng) };
}

function filledFleet(): Fleet {
  const fleet = new Fleet();
  for (let id = 1; id <= DEVICES; id++) {
    const name = oneOf([null, `Van "${id}"`]);
    fleet.putDevice(fieldsOf({ id, imei: imeiOf((id * 7_919) % DEVICES), worldId: oneOf(WORLDS), name }));
    const { lat, lng } = anyPlace();
    const speedKmh = rounded(between(0, 90));
    if (random() < 0.95)
      fleet.move(id, positionAt(lat, lng, NOW_MS - Math.floor(between(0, 3e8)), { speedKmh }));
  }
  return fleet;
}

function anyGeometry(): AreaGeometry {
  const center = anyPlace();
  center.lat = Math.max(-89, Math.min(89, center.lat));
  const radiusM = Math.round(between(500, 90_000));
  if (random() < 0.5) return { type: oneOf(['circle', 'point'] as const), center, radiusM };
  const size = radiusM / 111_000;
  const corner = (dLat: number, dLng: number) => {
    const lng = center.lng + dLng * size;
    return {
      lat: Math.max(-90, Math.min(90, center.lat + dLat * size)),
      lng: lng > 180 ? lng - 360 : lng < -180 ? lng + 360 : lng,
    };
  };
  const points = toVertices([corner(-1, -1), corner(-1, 1), corner(1, between(0, 1)), corner(0.5, -1)]);
  return random() < 0.6 ? { type: 'polygon', points } : { type: 'polyline', points, bufferM: radiusM / 10 };
}

function filledCatalog(): AreaCatalog {
  const areas = new AreaCatalog();
  for (let id = 1; id <= AREAS; id++) {
    const geometry = anyGeometry();
    const externalId = id % 3 === 0 ? `area:${id}` : null;
    const definition = { name: `Area ${id}`, color: '#3b82f6', geometry, externalId, dwellSeconds: 0 };
    const stored = {
      worldId: oneOf(WORLDS),
      accountId: 1,
      definition,
      measures: areaMeasures(geometry),
      createdAtMs: 0,
      revision: 1,
    };
    areas.put({ ...stored, id, shape: toShape(definition.geometry) });
  }
  return areas;
}

const fleet = filledFleet();
const areas = filledCatalog();
const turns = new WorkTurns<string | number>(3);
const bulkCalls = new BulkCalls(turns);
const atOnce = new AtOnce(turns);
const calls = new RouteCalls(
  [
    nearestRoute({ fleet, turns, atOnce }),
    nearestBatchRoute({ fleet, bulkCalls }),
    ...areasContainingRoutes({ areas, bulkCalls, atOnce }),
  ],
  { worldIds: SEEN, nowMs: NOW_MS },
);

/** A point as it is sent: a place, or what is none; as JSON and as a query say it alike. */
type Point = Readonly<Record<string, unknown>>;

const WRONG: readonly Point[] = [
  {},
  { lat: 91, lng: 0 },
  { lat: 0, lng: -181 },
  { lat: 1 },
  { lng: 1, lat: null },
];
const REFS = [undefined, null, 0, -1.5, 1e21, '', 'stop 7', '"\\\u0000\ud800', 'ß🚚', 'x'.repeat(100)];

function anyPoint(more: Point): { point: Point; refJson: string } {
  const ref = oneOf(REFS);
  const place = random() < 0.08 ? oneOf(WRONG) : anyPlace();
  return {
    point: { ...(ref === undefined ? {} : { ref }), ...place, ...more },
    refJson: JSON.stringify(ref ?? null),
  };
}

function queryOf(point: Point): string {
  const given = ['lat', 'lng', 'limit', 'max_km'].filter((name) => (point[name] ?? null) !== null);
  return `?${given.map((name) => `${name}=${point[name]}`).join('&')}`;
}

async function textOf(answer: Answer | Promise<Answer>): Promise<{ status: number; body: string }> {
  const made = await answer;
  return { status: made.status, body: Buffer.concat(await readPieces(made)).toString() };
}

const dataOf = (body: string): string => /^\{"data":(.*),"meta":/.exec(body)?.[1] ?? '';
const errorOf = (body: string): string => /^\{"error":(.*)\}$/.exec(body)?.[1] ?? '';

/**
 * Sends batches of points and each point by itself. `itemOf` makes the item of a batch from the answer to its single
 * call. Returns how many points had an error.
 */
async function compare(
  path: string,
  meta: string,
  more: () => Point,
  itemOf: (data: string) => string,
  filters: () => Readonly<Record<string, string>> = () => ({}),
): Promise<number> {
  let errors = 0;
  for (let batch = 0; batch < BATCHES; batch++) {
    const points = Array.from({ length: POINTS }, () => anyPoint(more()));
    const asked = filters();
    const { max_age_seconds: age } = asked;
    const filter = { ...asked, ...(age === undefined ? {} : { max_age_seconds: Number(age) }) };
    const { status, body } = await textOf(
      calls.post(`${path}/batch`, JSON.stringify({ points: points.map(({ point }) => point), filter })),
    );
    assert.equal(status, 200, body);
    const items: string[] = [];
    for (const { point, refJson } of points) {
      const query = `${queryOf(point)}&${new URLSearchParams(asked)}`;
      const single = await textOf(calls.get(path, query));
      const isFound = single.status === 200;
      if (!isFound) errors++;
      const result = isFound ? itemOf(dataOf(single.body)) : `"error":${errorOf(single.body)}`;
      items.push(`{"ref":${refJson},${result}}`);
    }
    assert.equal(body, `{"data":[${items.join(',')}],"meta":${meta}}`);
  }
  return errors;
}

describe(`${BATCHES} batches of ${POINTS} points (seed ${SEED})`, () => {
  test('of nearest questions: each item has the bytes of its single call, in the order sent', async () => {
    let devices = 0;
    const errors = await compare(
      '/devices/nearest',
      '{"distance":"straight_line_km"}',
      () => ({
        limit: oneOf([undefined, null, -3, 0, 1, 1, 2, 3.7, 9]),
        max_km: oneOf([undefined, undefined, null, 0.5, 40, 4_000, 30_000, 0, -1]),
      }),
      (data) => {
        if (data !== '[]') devices++;
        return `"devices":${data}`;
      },
    );
    assert.ok(
      devices > (BATCHES * POINTS) / 3 && errors > BATCHES,
      `${devices} with devices, ${errors} errors`,
    );
  });

  test('of nearest questions with a filter: the same', async () => {
    let devices = 0;
    await compare(
      '/devices/nearest',
      '{"distance":"straight_line_km"}',
      () => ({ limit: oneOf([undefined, 1, 5]), max_km: oneOf([undefined, 40, 4_000]) }),
      (data) => {
        if (data !== '[]') devices++;
        return `"devices":${data}`;
      },
      () =>
        oneOf([
          { status: 'parked,offline' },
          { max_age_seconds: '86400' },
          { status: 'moving', group: 'none' },
        ]),
    );
    assert.ok(devices > 0 && devices < BATCHES * POINTS, `${devices} with devices`);
  });

  test('are refused with 400 when their filter cannot be read', async () => {
    for (const filter of ['moving', [], 7, { status: 'driving' }, { max_age_seconds: '60' }]) {
      const { status, body } = await textOf(
        calls.post('/devices/nearest/batch', JSON.stringify({ points: [{ lat: 1, lng: 1 }], filter })),
      );
      assert.equal(status, 400, body);
      assert.match(body, /"code":"BAD_REQUEST"/);
    }
  });

  test('of containment questions: each item has the areas and distances of its single call, in its order', async () => {
    let found = 0;
    const errors = await compare(
      '/areas/containing',
      '{}',
      () => ({}),
      (data) => {
        const each = JSON.parse(data) as {
          area: { id: number; external_id: string | null };
          distance_m: number;
        }[];
        found += each.length;
        const list = each.map(({ area: { id, external_id }, distance_m }) => ({
          id,
          external_id,
          distance_m,
        }));
        return `"areas":${JSON.stringify(list)}`;
      },
    );
    assert.ok(found > (BATCHES * POINTS) / 10 && errors > BATCHES, `${found} areas, ${errors} errors`);
  });
});

describe('numbers that JSON can write and a query cannot', () => {
  for (const [path, point, message] of [
    ['/devices/nearest/batch', '{"lat":1,"lng":1,"max_km":1e999}', 'max_km must be a positive number'],
    ['/devices/nearest/batch', '{"lat":1e999,"lng":1}', 'INVALID_COORDINATES'],
    ['/areas/containing/batch', '{"ref":1e999,"lat":1,"lng":1}', 'ref must be text'],
    ['/areas/containing/batch', '{"lat":1,"lng":-1e999}', 'lat must be a number'],
  ] as const) {
    test(`${path}: ${point} is an error of its point`, async () => {
      const { status, body } = await textOf(
        calls.post(path, `{"points":[${point},{"ref":2,"lat":1,"lng":1}]}`),
      );
      assert.equal(status, 200, body);
      const [wrong, right] = JSON.parse(body).data;
      assert.equal(wrong.ref, null);
      assert.ok(JSON.stringify(wrong.error).includes(message), JSON.stringify(wrong));
      assert.deepEqual([right.ref, right.error], [2, undefined]);
    });
  }
});
