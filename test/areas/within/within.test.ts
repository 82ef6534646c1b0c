import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { scopeMask } from '../../../src/access/scopes.ts';
import { areaMeasures, toVertices } from '../../../src/areas/area.ts';
import { AreaCatalog } from '../../../src/areas/areaCatalog.memory.ts';
import { toShape } from '../../../src/areas/shape.ts';
import { devicesCountRoute } from '../../../src/areas/within/devicesCount.routes.ts';
import { devicesWithinRoutes } from '../../../src/areas/within/devicesWithin.routes.ts';
import { shapeRegion } from '../../../src/areas/within/place.ts';
import { Fleet } from '../../../src/devices/fleet.memory.ts';
import type { Region } from '../../../src/devices/index/regionWalk.ts';
import { boxRegion } from '../../../src/devices/living/boxRegion.ts';
import { BulkCalls } from '../../../src/http/bulkCalls.ts';
import { AtOnce, inOneGo, WorkTurns } from '../../../src/lib/workTurns.ts';
import { fieldsOf, imeiOf, positionAt } from '../../support/devices.ts';
import {
  type Asked,
  anyFilter,
  anyPlace,
  changeDevice,
  filledFleet,
  NOW_MS,
  oneOf,
  passes,
  queryOf,
  type Random,
} from '../../support/filteredFleet.ts';
import { RouteCalls, readPieces } from '../../support/http/routeCalls.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { IS_TORTURE } from '../../support/torture.ts';

const WORLDS = [1, 2, 3];
const SEEN = [1, 2];
const DEVICES = 1_200;

function serve(
  fleet: Fleet,
  areas = new AreaCatalog(),
  worldIds: readonly number[] = SEEN,
  turns = new WorkTurns<string | number>(3),
) {
  const ports = { fleet, areas, turns, bulkCalls: new BulkCalls(turns), atOnce: new AtOnce(turns) };
  const routes = [...devicesWithinRoutes(ports), devicesCountRoute(ports)];
  const calls = new RouteCalls(routes, {
    worldIds: [...worldIds],
    accountId: worldIds[0] ?? 1,
    nowMs: NOW_MS,
  });
  const read = async (answer: ReturnType<RouteCalls['get']>) => {
    const made = await answer;
    return { status: made.status, body: JSON.parse(Buffer.concat(await readPieces(made)).toString()) };
  };
  return {
    within: (asked: object) => read(calls.get('/devices/within', queryOf(asked))),
    count: (asked: object) => read(calls.get('/devices/count', queryOf(asked))),
    post: (body: object) => read(calls.post('/devices/within', JSON.stringify(body))),
  };
}

const clamped = (value: number, most: number) => Math.max(-most, Math.min(most, value));
const wrapped = (lng: number) => (lng > 180 ? lng - 360 : lng < -180 ? lng + 360 : lng);

/** west,south,east,north: of any size, across 180°, to the poles, of no width, or the whole world. */
function anyBox(random: Random): string {
  if (random() < 0.1)
    return oneOf(random, [
      '-180,-90,180,90',
      '0,-90,-1,90',
      '180,-17,-180,-16',
      '-180,-1,-170,1',
      '170,-1,180,1',
      '12.5,41.9,12.5,41.9',
    ]);
  const { lat, lng } = anyPlace(random);
  const [height, width] = [oneOf(random, [1e-5, 0.1, 5, 90]), oneOf(random, [1e-5, 0.1, 5, 170])];
  const [south, north] = [clamped(lat - height, 90), clamped(lat + height, 90)];
  return [wrapped(lng - width), south, wrapped(lng + width), north]
    .map((value) => value.toFixed(6))
    .join(',');
}

/** The rule of a box, written anew. */
function isInBox(text: string, lat: number, lng: number): boolean {
  const [west, south, east, north] = text.split(',').map(Number) as [number, number, number, number];
  if (lat < south || lat > north) return false;
  if (Math.abs(lat) === 90) return true;
  const names = Math.abs(lng) === 180 ? [-180, 180] : [lng];
  return names.some((name) => (west <= east ? name >= west && name <= east : name >= west || name <= east));
}

function anyArea(random: Random) {
  const place = anyPlace(random);
  const center = { lat: clamped(place.lat, 89), lng: place.lng };
  const radius_m = Math.round(oneOf(random, [100, 5_000, 100_000]) * (0.5 + random() / 2));
  if (random() < 0.4) return { type: 'circle', center, radius_m };
  const size = oneOf(random, [0.01, 0.5, 20]);
  const corner = (dLat: number, dLng: number) => ({
    lat: clamped(center.lat + dLat * size, 90),
    lng: wrapped(center.lng + dLng * size),
  });
  const points = [corner(-1, -1), corner(-0.9, 1), corner(0.8, random()), corner(0.5, -1.1)];
  return random() < 0.7
    ? { type: 'polygon', points }
    : { type: 'polyline', points: points.slice(0, 3), buffer_m: oneOf(random, [5, 500, 5_000]) };
}

function shapeOf(area: ReturnType<typeof anyArea>) {
  if (area.type === 'circle')
    return toShape({
      type: 'circle',
      center: area.center as { lat: number; lng: number },
      radiusM: area.radius_m as number,
    });
  const points = toVertices(area.points as { lat: number; lng: number }[]);
  return toShape(
    area.type === 'polygon'
      ? { type: 'polygon', points }
      : { type: 'polyline', points, bufferM: area.buffer_m as number },
  );
}

const imeisOf = (body: { data: { imei: string }[] }): string[] => body.data.map(({ imei }) => imei);

/** A filter of a query as a body has it. */
const inBody = ({ status, group, max_age_seconds: age }: Asked): object => ({
  ...(status !== undefined && { status: status.split(',').map((word) => word.trim()) }),
  ...(group !== undefined && { group: group.split(',') }),
  ...(age !== undefined && { max_age_seconds: Number(age) }),
});

/** Boxes that are asked for of each fleet, and shapes; ten thousand of both in the long form. */
const QUESTIONS = 40;
const FLEETS = IS_TORTURE ? 250 : 1;

describe('GET /devices/within and /devices/count', () => {
  test('agree with a loop over all devices, whatever the box and the filter, page by page, while devices change', async () => {
    let found = 0;
    for (let seed = 1; seed <= FLEETS; seed++) {
      const random = seededRandom(seed);
      const fleet = filledFleet(random, DEVICES, WORLDS);
      const { within, count } = serve(fleet);
      for (let n = 0; n < QUESTIONS; n++) {
        for (let change = 0; change < 20; change++)
          changeDevice(fleet, random, 1 + Math.floor(random() * DEVICES), WORLDS);
        const bbox = anyBox(random);
        const filter = random() < 0.5 ? anyFilter(random) : {};
        const hits = fleet
          .page(SEEN, 0, DEVICES)
          .filter((each) => each.position !== null && isInBox(bbox, each.position.lat, each.position.lng))
          .filter((each) => passes(each, filter));
        const imeis = hits.map(({ imei }) => imei);
        const limit = oneOf(random, [1, 7, 1_000]);
        const after = random() < 0.5 ? oneOf(random, imeis) : undefined;
        const rest = imeis.filter((imei) => after === undefined || imei > after);
        const label = `seed ${seed}, ${bbox} ${queryOf(filter)} after ${after}`;
        const { status, body } = await within({
          bbox,
          ...filter,
          limit,
          ...(after === undefined ? {} : { after }),
        });
        assert.equal(status, 200, label);
        assert.deepEqual(imeisOf(body), rest.slice(0, limit), label);
        assert.deepEqual(body.meta, { total: imeis.length, has_more: rest.length > limit }, label);
        found += imeis.length;

        const counts = (await count({ bbox, ...filter })).body.data;
        assert.equal(counts.total, imeis.length, label);
        const moving = hits.filter((each) => passes(each, { status: 'moving' })).length;
        assert.deepEqual([counts.moving, counts.unknown, counts.located], [moving, 0, imeis.length], label);
      }
    }
    assert.ok(found > 2_000, `${found} devices were found`);
  });

  test('agree with the rule of areas, whatever the shape and the filter, sent or saved, while devices change', async () => {
    let found = 0;
    const random = seededRandom(11);
    const fleet = filledFleet(random, DEVICES, WORLDS);
    const areas = new AreaCatalog();
    const { within, count, post } = serve(fleet, areas);
    for (let n = 0; n < QUESTIONS * FLEETS; n++) {
      for (let change = 0; change < 20; change++)
        changeDevice(fleet, random, 1 + Math.floor(random() * DEVICES), WORLDS);
      const area = anyArea(random);
      const filter = random() < 0.5 ? anyFilter(random) : {};
      const { status, body } = await post({ area, ...inBody(filter), limit: 1_000 });
      if (status === 422) continue; // a polygon that crosses itself at a pole
      const shape = shapeOf(area);
      const hits = fleet
        .page(SEEN, 0, DEVICES)
        .filter(({ position }) => position !== null && shape.contains(position.lat, position.lng))
        .filter((each) => passes(each, filter));
      const imeis = hits.map(({ imei }) => imei);
      assert.deepEqual(imeisOf(body), imeis, `${JSON.stringify(area)} ${queryOf(filter)}`);
      found += imeis.length;
      const geometry =
        area.type === 'circle'
          ? {
              type: 'circle' as const,
              center: area.center as { lat: number; lng: number },
              radiusM: area.radius_m as number,
            }
          : area.type === 'polygon'
            ? { type: 'polygon' as const, points: toVertices(area.points as { lat: number; lng: number }[]) }
            : {
                type: 'polyline' as const,
                points: toVertices(area.points as { lat: number; lng: number }[]),
                bufferM: area.buffer_m as number,
              };
      const definition = { name: 'x', color: '#3b82f6', geometry, externalId: null, dwellSeconds: 0 };
      const stored = {
        worldId: 1,
        accountId: 1,
        definition,
        measures: areaMeasures(geometry),
        createdAtMs: 0,
      };
      areas.put({ ...stored, id: n + 1, revision: 1, shape: toShape(geometry) });
      assert.deepEqual(imeisOf((await within({ area_id: n + 1, ...filter, limit: 1_000 })).body), imeis);
      assert.equal((await count({ area_id: n + 1, ...filter })).body.data.total, imeis.length);
    }
    assert.ok(found > 200, `${found} devices were found`);
  });

  test('answer in steps as of the first one, even if devices change before the last', () => {
    const random = seededRandom(21);
    const fleet = filledFleet(random, 6_000, WORLDS);
    // Many on one spot, in a list of their own.
    for (let id = 1; id <= 2_500; id++) fleet.move(id, positionAt(41.9, 12.5, NOW_MS + 1));
    let steps = 0;
    for (let n = 0; n < 4; n++) {
      const region: Region =
        n % 2 === 0
          ? boxRegion({ west: -180, south: -90, east: 180, north: 90 })
          : shapeRegion(toShape({ type: 'circle', center: { lat: 41.9, lng: 12.5 }, radiusM: 60_000 }));
      const before = fleet
        .page(SEEN, 0, 10_000)
        .filter(({ position }) => position !== null && region.contains(position.lat, position.lng));
      const expected = before.map((device) => [device.imei, device.position, device.groups]);
      const running = fleet.living.within(SEEN, region, null, NOW_MS, { afterImei: null, limit: 1_000 });
      const counting = fleet.living.count(SEEN, region, null, NOW_MS);
      for (;;) {
        const next = running.next();
        if (next.done === true) {
          const { devices, total, hasMore } = next.value;
          assert.equal(total, expected.length);
          assert.equal(hasMore, total > 1_000);
          const seen = devices.map((device) => [device.imei, device.position, device.groups]);
          assert.deepEqual(seen, expected.slice(0, 1_000));
          break;
        }
        steps++;
        if (n % 4 === 0) counting.next();
        for (let change = 0; change < 150; change++)
          changeDevice(fleet, random, 1 + Math.floor(random() * 6_020), WORLDS);
      }
      inOneGo(counting);
    }
    assert.ok(steps > 4, `${steps} steps`);
  });

  test('count every device without a place, also those without a position', async () => {
    const fleet = filledFleet(seededRandom(3), 700, WORLDS);
    const all = fleet.page(SEEN, 0, 1_000);
    const of = (status: string) => all.filter((device) => passes(device, { status })).length;
    const { data } = (await serve(fleet).count({})).body;
    const [moving, parked, offline, unknown] = ['moving', 'parked', 'offline', 'unknown'].map(of) as [
      number,
      number,
      number,
      number,
    ];
    assert.ok(unknown > 0);
    assert.deepEqual(data, {
      total: all.length,
      moving,
      parked,
      offline,
      unknown,
      located: all.length - unknown,
    });
    const group = (await serve(fleet).count({ group: 'north', status: 'parked,unknown' })).body.data;
    const both = all.filter((device) => passes(device, { group: 'north', status: 'parked,unknown' })).length;
    assert.equal(group.total, both);
  });

  test('refuse a place or a page that cannot be read with 400, and an area of somebody else with 404', async () => {
    const areas = new AreaCatalog();
    const geometry = { type: 'circle' as const, center: { lat: 1, lng: 1 }, radiusM: 100 };
    const definition = { name: 'x', color: '#3b82f6', geometry, externalId: null, dwellSeconds: 0 };
    areas.put({
      worldId: 3,
      accountId: 3,
      definition,
      measures: areaMeasures(geometry),
      createdAtMs: 0,
      id: 5,
      revision: 1,
      shape: toShape(geometry),
    });
    const { within, count } = serve(new Fleet(), areas);
    for (const bbox of [
      '1,2,3',
      '1,2,3,4,5',
      'a,2,3,4',
      '1,3,2,2',
      '181,0,1,1',
      '0,-91,1,1',
      '1e1,0,1,1',
      ',,,',
    ]) {
      assert.equal((await within({ bbox })).body.error.code, 'BAD_REQUEST', bbox);
      assert.equal((await count({ bbox })).status, 400, bbox);
    }
    for (const asked of [
      {},
      { bbox: ' ' },
      { bbox: '0,0,1,1', area_id: 5 },
      { area_id: 'x' },
      { area_id: 0 },
    ])
      assert.equal((await within(asked)).status, 400, JSON.stringify(asked));
    for (const more of [{ after: '12' }, { status: 'x' }, { group: ',' }])
      assert.equal((await within({ bbox: '0,0,1,1', ...more })).status, 400, JSON.stringify(more));
    for (const areaId of [5, 6]) {
      assert.equal((await within({ area_id: areaId })).body.error.code, 'NOT_FOUND');
      assert.equal((await count({ area_id: areaId })).status, 404);
    }
    const { meta } = (await within({ bbox: '0,0,1,1', limit: -5 })).body;
    assert.deepEqual(meta, { total: 0, has_more: false });
  });
});

test('a count of a place needs both permissions, since it tells where devices are', async () => {
  const turns = new WorkTurns<string | number>(3);
  const bulkCalls = new BulkCalls(turns);
  const ports = { fleet: new Fleet(), areas: new AreaCatalog(), turns, bulkCalls, atOnce: new AtOnce(turns) };
  const calls = new RouteCalls([devicesCountRoute(ports)], { scopes: scopeMask('read_devices') });
  for (const [query, status] of [
    ['', 200],
    ['?status=moving', 200],
    ['?bbox=0,0,1,1', 403],
    ['?bbox=x', 403],
    ['?area_id=1', 403],
  ] as const)
    assert.equal((await calls.get('/devices/count', query)).status, status, query);
});

describe('POST /devices/within', () => {
  const ring = (west: number, south: number, east: number, north: number) => [
    [west, south],
    [east, south],
    [east, north],
    [west, north],
    [west, south],
  ];
  const fleet = new Fleet();
  for (const [n, lng] of [0.5, 1.5, 2.5, 3.5].entries()) {
    fleet.putDevice(fieldsOf({ id: n + 1, groups: n % 2 === 0 ? ['even'] : [] }));
    fleet.move(n + 1, positionAt(0.5, lng, NOW_MS));
  }
  const { post } = serve(fleet);

  test('takes a Polygon, a MultiPolygon and a Feature of either, each device once', async () => {
    const polygon = { type: 'Polygon', coordinates: [ring(0, 0, 2, 1)] };
    const several = { type: 'MultiPolygon', coordinates: [[ring(0, 0, 1, 1)], [ring(2, 0, 3, 1)]] };
    for (const [geojson, ...ids] of [
      [polygon, 1, 2],
      [several, 1, 3],
      [{ type: 'Feature', properties: null, geometry: several }, 1, 3],
    ] as [object, ...number[]][]) {
      const { status, body } = await post({ geojson });
      assert.equal(status, 200);
      assert.deepEqual(imeisOf(body), ids.map(imeiOf));
      assert.deepEqual(body.meta, { total: ids.length, has_more: false });
    }
    const { body } = await post({ geojson: polygon, group: ['even'], limit: 1 });
    assert.deepEqual(imeisOf(body), [imeiOf(1)]);
  });

  test('goes on behind an IMEI', async () => {
    const geojson = { type: 'Polygon', coordinates: [ring(0, 0, 4, 1)] };
    const seen: string[] = [];
    for (let after: string | null = null; ; ) {
      const { body } = await post({ geojson, limit: 3, after });
      seen.push(...imeisOf(body));
      assert.equal(body.meta.total, 4);
      if (!body.meta.has_more) break;
      after = seen.at(-1) as string;
    }
    assert.deepEqual(seen, [1, 2, 3, 4].map(imeiOf));
  });

  test('ignores holes as areas do, and says so', async () => {
    const { body } = await post({
      geojson: { type: 'Polygon', coordinates: [ring(0, 0, 2, 1), ring(0.4, 0.4, 0.6, 0.6)] },
    });
    assert.equal(body.meta.total, 2);
    assert.deepEqual(
      body.meta.warnings.map(({ code }: { code: string }) => code),
      ['warnHolesIgnored'],
    );
  });

  test('refuses bad geometry with the 422 of the creation of an area', async () => {
    const bowTie = [
      [0, 0],
      [1, 1],
      [1, 0],
      [0, 1],
      [0, 0],
    ];
    const tooMany = Array.from({ length: 51 }, (_, n) => [ring(n, 0, n + 0.5, 1)]);
    for (const [body, code] of [
      [{}, 'REQUIRED'],
      [{ geojson: 7 }, 'INVALID_GEOJSON'],
      [{ geojson: { type: 'Point', coordinates: [0, 0] } }, 'INVALID_GEOJSON'],
      [{ geojson: { type: 'Feature', geometry: null } }, 'INVALID_GEOJSON'],
      [{ geojson: { type: 'Polygon', coordinates: 'x' } }, 'INVALID_GEOJSON'],
      [{ geojson: { type: 'MultiPolygon', coordinates: [] } }, 'INVALID_GEOJSON'],
      [{ geojson: { type: 'MultiPolygon', coordinates: tooMany } }, 'LIMIT_REACHED'],
      [{ geojson: { type: 'Polygon', coordinates: [bowTie] } }, 'SELF_INTERSECTION'],
      [{ geojson: { type: 'Polygon', coordinates: [[[0, 95]]] } }, 'INVALID_COORDINATES'],
      [
        {
          geojson: {
            type: 'Polygon',
            coordinates: [
              [
                [0, 0],
                [1, 1],
                [0, 0],
              ],
            ],
          },
        },
        'TOO_FEW_POINTS',
      ],
      [{ area: 'x' }, 'INVALID'],
      [{ area: {} }, 'INVALID'],
      [{ area: { type: 'circle', center: { lat: 0, lng: 0 } } }, 'REQUIRED'],
      [{ area: { type: 'circle', center: { lat: 0, lng: 0 }, radius_m: 1 } }, 'OUT_OF_RANGE'],
      [
        { area: { type: 'circle' }, geojson: { type: 'Polygon', coordinates: [ring(0, 0, 1, 1)] } },
        'INVALID',
      ],
    ] as [object, string][]) {
      const reply = await post(body);
      assert.equal(reply.status, 422, JSON.stringify(body));
      assert.equal(reply.body.error.code, 'VALIDATION_ERROR');
      const codes = reply.body.error.details.map((detail: { code: string }) => detail.code);
      assert.ok(codes.includes(code), `${JSON.stringify(body)}: ${codes}`);
    }
    assert.equal((await post([])).status, 422);
  });

  test('refuses a filter or a page that cannot be read with 400', async () => {
    const geojson = { type: 'Polygon', coordinates: [ring(0, 0, 1, 1)] };
    for (const more of [{ status: 'x' }, { group: [] }, { max_age_seconds: 0 }, { after: 7 }, { after: 'x' }])
      assert.equal((await post({ geojson, ...more })).status, 400, JSON.stringify(more));
  });
});

test('another account is answered while one asks for the whole world of a large fleet', async () => {
  const fleet = new Fleet();
  for (let id = 1; id <= 12_000; id++) {
    fleet.putDevice(fieldsOf({ id, worldId: id === 1 ? 2 : 1 }));
    // Half of them on one spot.
    fleet.move(id, id % 2 === 0 ? positionAt(1, 1) : positionAt((id % 120) - 60, (id % 359) - 179));
  }
  const turns = new WorkTurns<string | number>(3);
  const [busy, calm] = [[1], [2]].map((worlds) => serve(fleet, new AreaCatalog(), worlds, turns)) as [
    ReturnType<typeof serve>,
    ReturnType<typeof serve>,
  ];
  let answered = 0;
  const attack = Array.from({ length: 20 }, async () => {
    await busy.within({ bbox: '-180,-90,180,90', limit: 1_000 });
    answered++;
  });
  assert.equal((await calm.count({ bbox: '-180,-90,180,90' })).body.data.total, 1);
  assert.ok(answered < 20, 'it does not wait for the large fleet');
  await Promise.all(attack);
});
