import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { test } from 'node:test';
import { missingRealData } from '../../geo/shapes.ts';
import { type AreaApi, areaPod } from '../../support/http/areas.ts';
import { endingAt, readRecordings } from '../../support/ingest/recordings.ts';
import { collection } from '../reads/geojson.ts';
import { assertSameAreas, type WireArea } from '../sameAreas.ts';

const FILE = 'lazio-municipalities.geojson';
const FEATURES_PER_CALL = 200;
/** A sample of the reference points is asked over HTTP; ringSide.test.ts has all of them. */
const STRIDE = 75;

interface Municipality {
  readonly properties: { readonly name: string; readonly istat: string };
  readonly geometry: { readonly type: 'Polygon' | 'MultiPolygon'; readonly coordinates: readonly unknown[] };
}

/** Points with the municipality that PostGIS says they are in; null: in none. */
function referencePoints(): { lat: number; lng: number; name: string | null }[] {
  const path = join(import.meta.dirname, '..', '..', 'data', 'geometry-lazio-points.json');
  const { inside, outside } = JSON.parse(readFileSync(path, 'utf8')) as {
    inside: Record<string, string>;
    outside: string;
  };
  return [...Object.entries(inside), [null, outside] as const].flatMap(([name, text]) => {
    const numbers = text.split(' ').map(Number);
    return numbers.flatMap((value, n) =>
      n % 2 === 0 ? [{ name, lng: (11e6 + value) / 1e6, lat: (40e6 + numbers[n + 1]!) / 1e6 }] : [],
    );
  });
}

const service = areaPod();

// biome-ignore lint/suspicious/noExplicitAny: areas or Features, as asked for
async function listOf(by: AreaApi, format: 'json' | 'geojson'): Promise<any[]> {
  const items: object[] = [];
  for (;;) {
    const { body } = await by.get(`?limit=200&offset=${items.length}&format=${format}`);
    items.push(...(format === 'json' ? body.data : body.data.features));
    if (items.length >= body.meta.total) return items;
  }
}

/** Imports features in as many calls as they need; the indexes of those that were created. */
async function importAll(by: AreaApi, features: readonly unknown[]): Promise<number[]> {
  const indexes: number[] = [];
  for (let from = 0; from < features.length; from += FEATURES_PER_CALL) {
    const reply = await by.import(collection(...features.slice(from, from + FEATURES_PER_CALL)));
    assert.deepEqual([reply.status, reply.body.data.errors], [201, []]);
    indexes.push(...reply.body.data.created.map(({ index }: { index: number }) => from + index));
  }
  return indexes;
}

test('the municipalities of Lazio are imported, each part a named area, contain the points that PostGIS says, are exported as they were, and are entered and left by a recorded walk', {
  skip: missingRealData(FILE),
}, async () => {
  const path = join(process.env['FLEET_TEST_DATA'] as string, FILE);
  const { features } = JSON.parse(readFileSync(path, 'utf8')) as { features: Municipality[] };
  const parts = features.map(({ geometry }) =>
    geometry.type === 'Polygon' ? 1 : geometry.coordinates.length,
  );
  assert.deepEqual([features.length, parts.filter((count) => count > 1).length], [378, 22]);
  const [api, other] = [await service.newAccount(), await service.newAccount()];
  assert.deepEqual(
    await importAll(api, features),
    parts.flatMap((count, n) => Array(count).fill(n)),
  );
  const areas: WireArea[] = await listOf(api, 'json');
  const names = features.flatMap(({ properties: { name } }, n) =>
    parts[n] === 1 ? [name] : Array.from({ length: parts[n] as number }, (_, k) => `${name} (${k + 1})`),
  );
  assert.deepEqual(
    areas.map(({ name }) => name),
    names,
  );

  for (const { lat, lng, name } of referencePoints().filter((_, n) => n % STRIDE === 0)) {
    const inside: string[] = [];
    for (const { id, name, bounds } of areas) {
      const isNear = bounds.south <= lat && lat <= bounds.north && bounds.west <= lng && lng <= bounds.east;
      if (!isNear) continue;
      if ((await api.contains(id, lat, lng)).body.data.inside) inside.push(name.replace(/ \(\d+\)$/, ''));
    }
    assert.deepEqual(inside, name === null ? [] : [name], `${lat} ${lng}`);
  }

  await importAll(other, await listOf(api, 'geojson'));
  assertSameAreas(await listOf(other, 'json'), areas);
  await assertWalk(api);
});

/**
 * A recorded walk, moved into the Alban Hills: seconds from its first point, to each event and to the first point inside.
 * Computed with a ray cast, none of it by this service. No point lies nearer to a boundary than 3.9 m.
 */
const WALK: readonly (readonly [atSeconds: number, event: 'entry' | 'exit', area: string, since: number])[] =
  [
    [0, 'entry', 'Marino', 0],
    [2_984, 'exit', 'Marino', 0],
    [2_984, 'entry', 'Grottaferrata (1)', 2_984],
    [3_626, 'exit', 'Grottaferrata (1)', 2_984],
    [3_626, 'entry', 'Albano Laziale', 3_626],
    [4_490, 'exit', 'Albano Laziale', 3_626],
    [4_490, 'entry', 'Rocca di Papa', 4_490],
    [4_513, 'exit', 'Rocca di Papa', 4_490],
    [4_513, 'entry', 'Grottaferrata (1)', 4_513],
    [5_672, 'exit', 'Grottaferrata (1)', 4_513],
    [5_672, 'entry', 'Ciampino', 5_672],
  ];
const WALKER = { recorded: '352093081234503', imei: '352093081234513', north: -4, east: -1.68 };

/** The walk goes from municipality to municipality of the account of `api`, sent piece by piece as it would come in. */
async function assertWalk({ pod, key }: AreaApi): Promise<void> {
  const recordings = await readRecordings();
  const track = endingAt(recordings.get(WALKER.recorded) ?? [], Date.now()).map((point) => ({
    ...point,
    imei: WALKER.imei,
    latitude: point.latitude + WALKER.north,
    longitude: point.longitude + WALKER.east,
  }));
  await service.admin.device('owner1@example.com', WALKER.imei);
  for (let at = 0; at < track.length; at += 40) {
    const piece = track.slice(at, at + 40);
    assert.equal((await pod.points(piece)).accepted, piece.length);
  }
  const startMs = Date.parse(track[0]?.recorded_at ?? '');
  const seconds = (time: string | undefined): number => (Date.parse(time ?? '') - startMs) / 1_000;
  const { body } = await pod.get(`/api/v3/events?type=geofence&device=${WALKER.imei}&limit=200`, key);
  const events: { id: number; occurred_at: string; data: Record<string, string> }[] = body.data;
  assert.deepEqual(
    events
      .sort((a, b) => a.id - b.id)
      .map(({ data, occurred_at }) => [
        seconds(occurred_at),
        data['event'],
        data['areaName'],
        seconds(data['enteredAt']),
      ]),
    WALK,
  );
}
