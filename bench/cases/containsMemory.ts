import type { AreaCatalog } from '../../src/areas/areaCatalog.memory.ts';
import { toShape } from '../../src/areas/shape.ts';
import { distanceM } from '../../src/geo/wgs84.ts';
import { seededRandom } from '../../test/support/seededRandom.ts';
import type { BenchCase, Row } from '../benchCase.ts';
import { measureCalls } from '../measure/measureCalls.ts';
import { type Profile, profileCalls } from '../measure/profile.ts';
import { fillCatalog, jaggedRing, polygonArea, smallAreas } from '../setup/areas.ts';
import { POLYGON_CENTRE, POLYGON_RADIUS_DEG, placesAroundPolygon, placesOf } from '../setup/places.ts';

const VERTICES = [20, 200, 2_000];
const AREAS = [1_000, 10_000, 100_000];
const SMOKE_AREAS = [100, 500];
const QUERIES = 4_096;
const WORLD = 1;

export const containsMemory: BenchCase = {
  about: 'whether a polygon contains a place, and the distance to its edge, in process',
  run: async ({ smoke, seconds, sizes, profile: isProfiled, say }) => {
    const areas = sizes ?? (smoke ? SMOKE_AREAS : AREAS);
    const share = smoke ? 0.05 : seconds / (2 * VERTICES.length + 2 * areas.length + 1);
    const rows: Row[] = [];
    const metrics: Record<string, number> = {};
    const profiles: Profile[] = [];
    const queries = placesAroundPolygon(QUERIES);
    const asking = (call: (lat: number, lng: number) => unknown) => (n: number) => {
      const at = 2 * (n % QUERIES);
      return call(queries[at] as number, queries[at + 1] as number);
    };
    const measure = (what: string, call: (lat: number, lng: number) => unknown): number => {
      const found = measureCalls(share, asking(call));
      rows.push({ what, unit: 'calls', ...found });
      return found.cpuUs;
    };
    for (const vertices of VERTICES) {
      const ring = jaggedRing(vertices, POLYGON_CENTRE, POLYGON_RADIUS_DEG, 1);
      const shape = toShape(polygonArea('Bench', ring).geometry);
      const insideUs = measure(`inside, ${vertices} vertices`, (lat, lng) => shape.contains(lat, lng));
      // The route computes both.
      metrics[`us_${vertices}`] =
        insideUs + measure(`distance, ${vertices} vertices`, (lat, lng) => shape.signedDistanceM(lat, lng));
      if (isProfiled && vertices === VERTICES.at(-1)) {
        const both = asking((lat, lng) => Number(shape.contains(lat, lng)) + shape.signedDistanceM(lat, lng));
        profiles.push(await profileCalls(`contains with its distance, ${vertices} vertices`, both));
      }
    }
    metrics['growth'] = (metrics['us_2000'] as number) / (metrics['us_20'] as number);
    for (const count of areas) {
      say(`${count} areas`);
      const catalog = fillCatalog(smallAreas(count), WORLD);
      rows.push(measureById(catalog, count, share), measureCandidates(catalog, count, share));
    }
    measure('floor: one distance on the ellipsoid', (lat, lng) =>
      distanceM(lat, lng, POLYGON_CENTRE.lat, POLYGON_CENTRE.lng),
    );
    const size = `polygons of ${VERTICES.join(', ')} vertices`;
    return { kind: 'measured', size, rows, metrics, profiles };
  },
};

/** What the engine looks up for every point: the areas of its world that may contain it. */
function measureCandidates(catalog: AreaCatalog, count: number, seconds: number): Row {
  const places = placesOf('towns', 2, QUERIES);
  const candidates = (n: number): number => {
    const at = 2 * (n % QUERIES);
    return catalog.near([WORLD], places[at] as number, places[at + 1] as number).length;
  };
  let all = 0;
  for (let n = 0; n < QUERIES; n++) all += candidates(n);
  const what = `candidates of ${count} areas, ${(all / QUERIES).toPrecision(2)} on average`;
  return { what, unit: 'calls', ...measureCalls(seconds, candidates) };
}

/** What the contains route looks up: an area by id, and the distance to its edge. */
function measureById(catalog: AreaCatalog, count: number, seconds: number): Row {
  const random = seededRandom(8);
  const ids = Int32Array.from({ length: QUERIES }, () => 1 + Math.floor(random() * count));
  const places = placesAroundPolygon(QUERIES);
  const found = measureCalls(seconds, (n) => {
    const at = n % QUERIES;
    const area = catalog.area([WORLD], ids[at] as number);
    return area?.shape.signedDistanceM(places[2 * at] as number, places[2 * at + 1] as number);
  });
  return { what: `contains of any of ${count} areas`, unit: 'calls', ...found };
}
