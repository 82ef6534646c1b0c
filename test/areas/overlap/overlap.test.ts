import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { AreaGeometry } from '../../../src/areas/area.ts';
import type { Outline } from '../../../src/areas/overlap/overlap.ts';
import { clipOverlapM2, ringOverlapM2 } from '../../../src/areas/overlap/polygonOverlap.ts';
import { sliceOverlapM2 } from '../../../src/areas/overlap/sliceOverlap.ts';
import { toShape } from '../../../src/areas/shape.ts';
import { meridianRadiusM, parallelRadiusM } from '../../../src/geo/wgs84.ts';
import { inOneGo } from '../../../src/lib/workTurns.ts';
import { lazioRings, missingRealData, readReference } from '../../geo/shapes.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { IS_TORTURE } from '../../support/torture.ts';
import { circle, common, outline, type Pair, polygon, star, track } from './outlines.ts';

function assertNear(actual: number, expected: number, share: number, what = ''): void {
  const error = Math.abs(actual / expected - 1);
  assert.ok(error <= share, `${what} ${actual} is not ${expected}: ${error}`);
}

interface Figures {
  readonly cases: readonly {
    readonly a: Sent;
    readonly b: Sent;
    readonly commonM2: number;
    readonly areaOfA: number;
    readonly areaOfB: number;
  }[];
}
type Sent =
  | { readonly type: 'circle'; readonly center: Pair; readonly radiusM: number }
  | { readonly type: 'polygon'; readonly points: readonly Pair[] }
  | { readonly type: 'polyline'; readonly points: readonly Pair[]; readonly bufferM: number };

function geometryOf(sent: Sent): AreaGeometry {
  switch (sent.type) {
    case 'circle':
      return circle(...sent.center, sent.radiusM);
    case 'polygon':
      return polygon(...sent.points);
    case 'polyline':
      return track(sent.bufferM, ...sent.points);
  }
}

describe('the overlap of two areas', () => {
  test('is what PostGIS computes, within 0.1 %, for every pair of kinds of shapes from the equator to 78°', () => {
    const { cases } = readReference<Figures>('overlaps-postgis.json');
    assert.equal(cases.length, 60);
    for (const [n, { a, b, commonM2, areaOfA, areaOfB }] of cases.entries()) {
      const [outlineA, outlineB] = [outline(geometryOf(a)), outline(geometryOf(b))];
      assertNear(outlineA.areaM2, areaOfA, 0.001, `area of ${n}`);
      assertNear(outlineB.areaM2, areaOfB, 0.001, `area of ${n}`);
      assertNear(common(outlineA, outlineB), commonM2, 0.001, `overlap of ${n}`);
      if (n % 3 === 0 || IS_TORTURE)
        assertNear(common(outlineB, outlineA), commonM2, 0.001, `overlap of ${n}, the other first`);
    }
  });

  const SQUARE = polygon([0, 0], [0, 1], [1, 1], [1, 0]);
  const ACROSS = polygon([10, 179], [10, -179], [12, -179], [12, 179]);
  const CAP = polygon([80, 0], [80, 90], [80, 180], [80, -90]);
  const AROUND_THE_POLE = circle(89.9, 30, 100_000);
  /** Pairs in which the second contains the first: the overlap is the first. */
  const CONTAINED: readonly [what: string, inner: AreaGeometry, outer: AreaGeometry][] = [
    ['a polygon in itself', SQUARE, SQUARE],
    ['a circle in itself', circle(45, 7, 30_000), circle(45, 7, 30_000)],
    ['a track in itself', track(500, [45, 7], [45.1, 7.2]), track(500, [45, 7], [45.1, 7.2])],
    ['a circle in a polygon', circle(0.5, 0.5, 10_000), SQUARE],
    ['a circle in a polygon across 180°', circle(11, 180, 10_000), ACROSS],
    ['a circle in a polygon across 180°, from the other side', circle(11, -179.9, 5_000), ACROSS],
    ['a track across 180°', track(800, [11, 179.5], [11, -179.5]), ACROSS],
    ['a circle around a pole in a polygon around it', AROUND_THE_POLE, CAP],
    ['a polygon around a pole in a larger one', polygon([85, 10], [85, 100], [85, -170], [85, -80]), CAP],
    ['a circle at the other pole', circle(-90, 0, 20_000), circle(-89.9, 77, 90_000)],
  ];
  for (const [what, inner, outer] of CONTAINED) {
    test(`${what}: all of it`, () => {
      const [a, b] = [outline(inner), outline(outer)];
      assertNear(common(a, b), a.areaM2, 0.0002);
      assertNear(common(b, a), a.areaM2, 0.0002);
    });
  }

  const APART: readonly [what: string, AreaGeometry, AreaGeometry][] = [
    ['neighbours with a common edge', SQUARE, polygon([0, 1], [0, 2], [1, 2], [1, 1])],
    ['neighbours with a common corner', SQUARE, polygon([1, 1], [1, 2], [2, 2], [2, 1])],
    ['circles a metre apart', circle(0, 0, 1_000), circle(0, 0.018, 1_000)],
    ['shapes on the two sides of the Earth', circle(0, 0, 100_000), circle(0, 180, 100_000)],
    [
      'a circle in the bay of a polygon',
      polygon([0, 0], [0, 2], [2, 2], [0.2, 1], [2, 0]),
      circle(1.5, 1, 20_000),
    ],
  ];
  for (const [what, one, other] of APART) {
    test(`${what}: nothing`, () => {
      const [a, b] = [outline(one), outline(other)];
      const least = Math.min(a.areaM2, b.areaM2);
      assert.ok(common(a, b) <= 1e-9 * least, String(common(a, b)));
      assert.ok(inOneGo(sliceOverlapM2(a.slices(), b.slices())) <= 1e-9 * least);
    });
  }

  test('long thin tracks that cross: what they have in common at the crossings, within 0.2 %', () => {
    for (const [bufferM, half] of [
      [5, 10],
      [200, 0.5],
    ] as const) {
      const north = track(bufferM, [-half, -half], [half, half]);
      const south = track(bufferM, [half, -half], [-half, half]);
      // A rhombus at the equator, where the tracks meet at this angle.
      const angle = 2 * Math.atan2(meridianRadiusM(0), parallelRadiusM(0));
      assertNear(
        common(outline(north), outline(south)),
        (2 * bufferM) ** 2 / Math.sin(angle),
        0.002,
        `${bufferM} m`,
      );
      // Once more, a turn further east.
      const twice = track(
        bufferM,
        [half, -half],
        [-half, half],
        [-half, half + 1],
        [half, half + 1 + 2 * half],
      );
      assertNear(
        common(outline(north), outline(twice)),
        (2 * bufferM) ** 2 / Math.sin(angle),
        0.002,
        `${bufferM} m, twice`,
      );
    }
  });

  test('a track of many rows: the size of its rows, within 0.2 %, however thin they are', () => {
    for (const [rows, bufferM] of [
      [10, 20],
      [900, 5],
    ] as const) {
      const pairs: Pair[] = [];
      let lengthM = ((rows - 1) * 0.005 * Math.PI * meridianRadiusM(0)) / 180;
      for (let n = 0; n < rows; n++) {
        const lat = (n - rows / 2) * 0.005;
        pairs.push([lat, n % 2 === 0 ? 0 : 0.1], [lat, n % 2 === 0 ? 0.1 : 0]);
        lengthM += (0.1 * Math.PI * parallelRadiusM(lat)) / 180;
      }
      // At each corner the strips share a square, and a quarter of a disc lies outside of both.
      const corners = 2 * (rows - 1);
      const square = bufferM * bufferM;
      const expected = 2 * bufferM * lengthM + Math.PI * square - corners * square * (1 - Math.PI / 4);
      assertNear(outline(track(bufferM, ...pairs)).areaM2, expected, 0.002, `${rows} rows`);
    }
  });

  test('municipalities that share a border have nothing else in common, within 0.01 % of either', {
    skip: missingRealData('lazio-municipalities.geojson'),
  }, () => {
    const rings = [...lazioRings().values()].flat();
    assert.ok(rings.length >= 378);
    const outlines = rings.map((points) =>
      outline(polygon(...points.map(({ lat, lng }): Pair => [lat, lng]))),
    );
    let neighbours = 0;
    for (let i = 0; i < outlines.length; i++) {
      // Some neighbours of each are enough for a quick run; all of them under torture.
      const last = IS_TORTURE ? outlines.length : Math.min(outlines.length, i + 2);
      for (let j = i + 1; j < last; j++) {
        const [a, b] = [outlines[i] as Outline, outlines[j] as Outline];
        const commonM2 = common(a, b);
        assert.ok(commonM2 <= 0.0001 * Math.min(a.areaM2, b.areaM2), `${i} and ${j}: ${commonM2}`);
        neighbours++;
      }
    }
    assert.ok(neighbours >= 370);
  });
});

describe('the ways to measure an overlap', () => {
  const random = seededRandom(20_261_122);
  const between = (low: number, high: number): number => low + random() * (high - low);
  const RUNS = IS_TORTURE ? 5_000 : 25;

  function anyStar(lat: number, lng: number, size: number): Pair[] {
    const corners = star(random, 3 + Math.floor(random() * 20), [lat, lng], size);
    return corners.map(([y, x]): Pair => [y, wrapped(x)]);
  }

  const wrapped = (lng: number): number => (lng > 180 ? lng - 360 : lng < -180 ? lng + 360 : lng);

  test('polygon-clipping, edges and slices agree on random polygons, at 180° too', () => {
    let met = 0;
    for (let run = 0; run < RUNS; run++) {
      const lat = between(-80, 80);
      const lng = random() < 0.5 ? between(179, 180) : between(-170, 170);
      const size = between(0.01, 3);
      const a = outline(polygon(...anyStar(lat, lng, size)));
      const b = outline(
        polygon(...anyStar(lat + between(-size, size), wrapped(lng + between(-size, size)), size)),
      );
      assert.ok(a.polygon !== null && b.polygon !== null);
      const clipped = clipOverlapM2(a.polygon.planar, b.polygon.planar);
      const sliced = inOneGo(sliceOverlapM2(a.slices(), b.slices()));
      const summed = inOneGo(ringOverlapM2(a.polygon.edges(), b.polygon.edges()));
      assert.ok(clipped !== null, `run ${run}`);
      const least = Math.min(a.areaM2, b.areaM2);
      assert.ok(
        Math.abs(clipped - sliced) <= 0.0005 * least,
        `run ${run}: ${clipped} and ${sliced} of ${least}`,
      );
      assert.ok(
        Math.abs(clipped - summed) <= 1e-9 * least,
        `run ${run}: ${clipped} and ${summed} of ${least}`,
      );
      if (clipped > 0.01 * least) met++;
    }
    assert.ok(met > RUNS / 5);
  });

  test('an overlap is the share of random positions that both areas contain', () => {
    const POSITIONS = IS_TORTURE ? 20_000 : 2_000;
    for (let run = 0; run < (IS_TORTURE ? 200 : 9); run++) {
      const lat = between(-70, 70);
      const lng = random() < 0.3 ? 179.99 : between(-170, 170);
      const kinds: (() => AreaGeometry)[] = [
        () => circle(lat + between(-0.02, 0.02), wrapped(lng + between(-0.02, 0.02)), between(1_000, 5_000)),
        () => polygon(...anyStar(lat, lng, 0.06)),
        () => track(between(300, 2_000), ...anyStar(lat, lng, 0.05).slice(0, 4)),
      ];
      const [a, b] = [0, 1].map((n) => kinds[(run + n * 2) % 3]?.()) as [AreaGeometry, AreaGeometry];
      const [shapeA, shapeB] = [toShape(a), toShape(b)];
      // Nearly a rectangle: the parallels are weighed by their length in its middle.
      const half = 0.12;
      let hits = 0;
      for (let n = 0; n < POSITIONS; n++) {
        const y = between(lat - half, lat + half);
        const x = wrapped(between(lng - half, lng + half));
        if (shapeA.contains(y, x) && shapeB.contains(y, x)) hits++;
      }
      const boxM2 = outline(
        polygon(
          [lat - half, wrapped(lng - half)],
          [lat - half, wrapped(lng + half)],
          [lat + half, wrapped(lng + half)],
          [lat + half, wrapped(lng - half)],
        ),
      ).areaM2;
      const expected = (hits / POSITIONS) * boxM2;
      const deviation = (boxM2 * Math.sqrt(hits + 1)) / POSITIONS;
      const actual = common(outline(a), outline(b));
      assert.ok(
        Math.abs(actual - expected) <= 5 * deviation + 0.01 * expected,
        `run ${run}: ${actual}, ${expected}`,
      );
    }
  });
});
