import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { intersection } from 'polyclip-ts';
import type { Outline } from '../../../src/areas/overlap/overlap.ts';
import { clipOverlapM2, ringOverlapM2 } from '../../../src/areas/overlap/polygonOverlap.ts';
import { type Edges, northwardAreaM2 } from '../../../src/geo/wgs84.ts';
import { inOneGo } from '../../../src/lib/workTurns.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { runs } from '../../support/torture.ts';
import {
  BACK,
  comb,
  common,
  outline as outlineOf,
  type Pair,
  polygon,
  star as starOf,
  TEETH,
} from './outlines.ts';

// Polygons whose coordinates are nearly equal, on which polygon-clipping alone splits the same edges without end.
// Its limit is a million edges, so a test that lets it do so takes long and then fails.

const outline = (pairs: readonly Pair[]): Outline => outlineOf(polygon(...pairs));
const ringOf = ({ polygon }: Outline): Edges => polygon?.planar ?? assert.fail('a polygon has a ring');
const summed = (a: Outline, b: Outline): number => {
  assert.ok(a.polygon !== null && b.polygon !== null);
  return inOneGo(ringOverlapM2(a.polygon.edges(), b.polygon.edges()));
};

/** What polyclip-ts makes of it, which calculates with more digits. */
function oracleM2(a: readonly Pair[], b: readonly Pair[]): number {
  const closed = (pairs: readonly Pair[]) =>
    [...pairs, pairs[0] as Pair].map(([lat, lng]): [number, number] => [lng, lat]);
  let areaM2 = 0;
  for (const rings of intersection([closed(a)], [closed(b)])) {
    for (const [n, ring] of rings.entries()) {
      const path = { lngs: ring.map(([lng]) => lng), lats: ring.map(([, lat]) => lat), points: [] };
      areaM2 += (n === 0 ? 1 : -1) * Math.abs(northwardAreaM2(path, path.lats[0] as number));
    }
  }
  return areaM2;
}

const random = seededRandom(20_261_124);
const between = (low: number, high: number): number => low + random() * (high - low);

const star = (corners: number, centre: Pair, size: number) => starOf(random, corners, centre, size);

const moved = (pairs: readonly Pair[], move: (degrees: number) => number): Pair[] =>
  pairs.map(([lat, lng]): Pair => [move(lat), move(lng)]);
const anywhere = (): Pair => [between(-70, 70), between(-170, 170)];
/** From ten metres to a thousand kilometres. */
const anySize = (): number => 10 ** between(-4, 1);

describe('polygons with nearly equal coordinates', () => {
  const TRIANGLE: Pair[] = [
    [-24.0092124627823, -174.9775804598137],
    [-24.003722784901097, -174.9893199092621],
    [-24.006772441189895, -174.9765613374173],
  ];
  const ITS_COPY: Pair[] = [
    [-24.00921246278231, -174.97758045981368],
    [-24.003722784901104, -174.98931990926212],
    [-24.006772441189895, -174.97656133741734],
  ];
  const square = (south: number, west: number, size: number): Pair[] => [
    [south, west],
    [south, west + size],
    [south + size, west + size],
    [south + size, west],
  ];
  const THIRD = 1 / 3;
  /** Pairs and the share of the first that both have in common. */
  const CASES: readonly [what: string, a: readonly Pair[], b: readonly Pair[], share: number][] = [
    ['a triangle and its copy, a unit of the last digit apart', TRIANGLE, ITS_COPY, 1],
    ['the copy and the triangle', ITS_COPY, TRIANGLE, 1],
    ['a square and its copy, a nanometre to the north', square(45, 7, 0.01), square(45 + 1e-14, 7, 0.01), 1],
    ['a square of a metre and its copy', square(45, 7, 1e-5), square(45 + 1e-14, 7 - 1e-14, 1e-5), 1],
    [
      'a square and its neighbour, a nanometre into it',
      square(45, 7, 0.01),
      square(45, 7.01 - 1e-14, 0.01),
      0,
    ],
    [
      'a turned square and the same with a vertex nearly on an edge',
      [
        [0, 0],
        [1, THIRD],
        [1 - THIRD, 1 + THIRD],
        [-THIRD, 1],
      ],
      [
        [0, 0],
        [0.7, 0.7 * THIRD],
        [1, THIRD],
        [1 - THIRD, 1 + THIRD],
        [-THIRD, 1],
      ],
      1,
    ],
    [
      'a metre in a country whose border nearly is one of its edges',
      square(45, 7, 1e-5),
      [
        [40, 0],
        [45 + 1e-14, 7],
        [45 + 1e-14, 7 + 1e-5],
        [45, 20],
        [55, 20],
        [55, 0],
      ],
      1,
    ],
  ];
  for (const [what, pairsA, pairsB, share] of CASES) {
    test(`${what}: measured at once, within 0.01 %`, () => {
      const [a, b] = [outline(pairsA), outline(pairsB)];
      const clipped = clipOverlapM2(ringOf(a), ringOf(b));
      assert.ok(clipped !== null);
      for (const areaM2 of [clipped, summed(a, b), common(a, b), common(b, a)])
        assert.ok(Math.abs(areaM2 - share * a.areaM2) <= 1e-4 * a.areaM2, `${areaM2} of ${a.areaM2}`);
    });
  }

  test('stars of up to 150 vertices and their copies, rounded or shaken in the last digits', () => {
    for (let run = 0; run < runs(60); run++) {
      const pairs = star(3 + Math.floor(random() * 148), anywhere(), anySize());
      const digits = run % 2 === 0 ? 15 : Math.floor(between(10, 15));
      const copy =
        run % 3 === 0
          ? moved(pairs, (degrees) => degrees * (1 + between(-1, 1) * 10 ** -digits))
          : moved(pairs, (degrees) => Number(degrees.toPrecision(digits)));
      const [a, b] = [outline(pairs), outline(copy)];
      const clipped = clipOverlapM2(ringOf(a), ringOf(b));
      const sum = summed(a, b);
      assert.ok(clipped !== null, `run ${run} is clipped`);
      assert.ok(Math.abs(clipped - sum) <= 1e-5 * a.areaM2, `run ${run}: ${clipped} and ${sum}`);
    }
  });

  test('small polygons that share vertices and edges, and slivers of them: what polyclip-ts says, within 0.1 %', () => {
    for (let run = 0; run < runs(30); run++) {
      const size = anySize();
      const pairs = star(4 + Math.floor(random() * 6), anywhere(), size);
      const [p0, p1] = pairs as [Pair, Pair];
      const off = size * 10 ** between(-15, -3);
      const others: readonly Pair[][] = [
        // Some vertices stay.
        pairs.map((pair, n) => (n % 3 === 0 ? (star(1, pair, off)[0] as Pair) : pair)),
        // A triangle on its first edge, on either side.
        [p0, p1, [(p0[0] + p1[0]) / 2 + between(-size, size), (p0[1] + p1[1]) / 2 + between(-size, size)]],
        // A sliver along it.
        [
          p0,
          p1,
          [
            (p0[0] + p1[0]) / 2 + size * between(-1e-4, 1e-4),
            (p0[1] + p1[1]) / 2 + size * between(-1e-4, 1e-4),
          ],
        ],
      ];
      const other = others[run % others.length] as Pair[];
      const [a, b] = [outline(pairs), outline(other)];
      const expected = oracleM2(pairs, other);
      const tolerance = 0.001 * Math.min(a.areaM2, b.areaM2);
      for (const areaM2 of [common(a, b), common(b, a), summed(a, b)])
        assert.ok(Math.abs(areaM2 - expected) <= tolerance, `run ${run}: ${areaM2}, ${expected}`);
    }
  });
});

describe('polygons with very many crossings', () => {
  test('two combs have in common what the teeth and backs of one have with those of the other, within 0.05 %', () => {
    const [a, b] = [outline(comb(false)), outline(comb(true))];
    /** How much of the teeth lies between 0 and `to`. */
    const teethBelow = (to: number): number => {
      let length = 0;
      for (let n = 0; n < TEETH; n++) length += Math.max(0, Math.min(to, (n + 0.45) / TEETH) - n / TEETH);
      return length;
    };
    const besideBack = teethBelow(BACK);
    const beyond = teethBelow(1) - besideBack;
    const expected = BACK * BACK + 2 * besideBack * (1 - BACK) + beyond * beyond;
    const square = outline([
      [0, 0],
      [0, 1],
      [1, 1],
      [1, 0],
    ]);
    assert.ok(Math.abs(summed(a, b) / square.areaM2 / expected - 1) < 0.0005);
  });
});
