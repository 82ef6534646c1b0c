import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { orient2d } from 'robust-predicates';
import { unwrapRing } from '../../../src/geo/path.ts';
import { isSelfIntersecting } from '../../../src/geo/selfIntersection.ts';
import { runs } from '../../support/torture.ts';
import {
  gridPoints,
  lazioRings,
  missingRealData,
  parsePoints,
  polarRings,
  readReference,
  realBoundaries,
  rotated,
  starRings,
  toPoints,
} from '../shapes.ts';

interface Validity {
  readonly rings: readonly { readonly name: string; readonly points: string; readonly valid: boolean }[];
  readonly grid: { readonly valid: readonly string[]; readonly invalid: readonly string[] };
}

const reference = readReference<Validity>('geometry-validity.json');

describe('isSelfIntersecting agrees with ST_IsValid', () => {
  for (const { name, points, valid } of reference.rings) {
    test(`${name}: ${valid ? 'valid' : 'not valid'}`, () => {
      const given = parsePoints(points);
      for (let by = 0; by < given.length; by++) {
        assert.equal(isSelfIntersecting(unwrapRing(rotated(given, by))), !valid, `from vertex ${by}`);
        assert.equal(isSelfIntersecting(unwrapRing(rotated(given, by).reverse())), !valid, `back from ${by}`);
      }
    });
  }

  for (const verdict of ['valid', 'invalid'] as const) {
    test(`on ${verdict} rings of a small grid`, () => {
      for (const text of reference.grid[verdict]) {
        const points = text
          .split(' ')
          .map((vertex) => ({ lng: Math.floor(Number(vertex) / 10), lat: Number(vertex) % 10 }));
        assert.equal(isSelfIntersecting(unwrapRing(points)), verdict === 'invalid', text);
      }
    });
  }
});

describe('isSelfIntersecting', () => {
  test('agrees with comparing all pairs of edges', () => {
    const anyRing = fc.oneof(gridPoints(9, 5), gridPoints(40, 30), starRings(60), starRings(60));
    const unit = fc.double({ min: -1, max: 1, noNaN: true });
    fc.assert(
      fc.property(anyRing, fc.nat(), unit, unit, (points, i, north, east) => {
        // One vertex out of place: valid still, or crossing a few sides only.
        const moved = [...points];
        const [from, other] = [points[i % points.length]!, points[(i * 7) % points.length]!];
        const [lat, lng] = [
          from.lat + north * (other.lat - from.lat),
          from.lng + east * (other.lng - from.lng),
        ];
        if (Math.abs(other.lng - from.lng) < 180) moved[i % points.length] = { lat, lng };
        for (const ring of [unwrapRing(points), unwrapRing(moved)]) {
          assert.equal(isSelfIntersecting(ring), !isSimpleByPairs(ring.lngs, ring.lats));
        }
      }),
      { seed: 3, numRuns: runs(750) },
    );
  });

  test('accepts every ring around a pole with one vertex per meridian', () => {
    fc.assert(
      fc.property(polarRings, (points) => assert.equal(isSelfIntersecting(unwrapRing(points)), false)),
      { seed: 4, numRuns: runs(75) },
    );
  });

  test('rejects a ring around a pole that meets itself a turn further', () => {
    const below = parsePoints('0 60, 120 60, -120 60, -10 60, -5 40, 20 40, 20 50, -2 50');
    assert.equal(isSelfIntersecting(unwrapRing(below)), false);
    const across = parsePoints('0 60, 120 60, -120 60, -10 60, -5 40, 20 40, 20 61, -2 50');
    assert.equal(isSelfIntersecting(unwrapRing(across)), true);
    const touching = parsePoints('0 60, 120 60, -120 60, -10 60, -5 40, 20 40, 20 60, -2 50');
    assert.equal(isSelfIntersecting(unwrapRing(touching)), true);
  });

  test('rejects a ring that runs around the Earth more than once', () => {
    assert.equal(isSelfIntersecting(unwrapRing(parsePoints('0 1, 120 2, -120 3, 0 4, 120 5, -120 6'))), true);
    const helix = '0 0, 120 2, -120 4, 0 6, 90 8, 90 9, 0 7, -120 5, 120 3, 0 1';
    assert.equal(isSelfIntersecting(unwrapRing(parsePoints(helix))), true);
  });

  test('finds one crossing among 2000 sides whose bounding boxes all overlap', () => {
    const hatched = (shift: number) => {
      const points = [];
      for (let i = 0; i < 999; i++) {
        points.push(
          { lng: i / 1000, lat: 0 },
          { lng: 10 + i / 1000 + (i === 500 ? shift : 0.0005), lat: 10 },
        );
      }
      points.push({ lng: 20, lat: 10 }, { lng: 20, lat: -1 });
      return unwrapRing(points);
    };
    assert.equal(isSelfIntersecting(hatched(0.0005)), false);
    assert.equal(isSelfIntersecting(hatched(0.0016)), true);
  });
});

describe('real boundaries are valid', { skip: missingRealData('boundaries.json.gz') }, () => {
  test('all municipalities of Lazio, Sicily and Liguria', () => {
    const lazio = [...lazioRings()].flatMap(([name, rings]) => rings.map((points) => ({ name, points })));
    const others = realBoundaries().municipalities.map(({ name, rings }) => ({
      name,
      points: toPoints(rings[0]!),
    }));
    assert.equal(lazio.length, 415);
    const faulty = [...lazio, ...others].filter(({ points }) => isSelfIntersecting(unwrapRing(points)));
    assert.deepEqual(
      faulty.map(({ name }) => name),
      [],
    );
  });

  test('outlines over the antimeridian and far south', () => {
    for (const { name, points } of realBoundaries().outlines) {
      assert.equal(isSelfIntersecting(unwrapRing(points)), false, name);
    }
  });
});

/** The definition, pair by pair. */
function isSimpleByPairs(xs: readonly number[], ys: readonly number[]): boolean {
  const n = xs.length - 1;
  if (n < 3) return false;
  const side = (i: number, j: number, k: number) =>
    Math.sign(orient2d(xs[i]!, ys[i]!, xs[j]!, ys[j]!, xs[k]!, ys[k]!));
  const between = (values: readonly number[], i: number, j: number, k: number) =>
    Math.min(values[i]!, values[j]!) <= values[k]! && values[k]! <= Math.max(values[i]!, values[j]!);
  const isOn = (i: number, k: number) =>
    side(i, i + 1, k) === 0 && between(xs, i, i + 1, k) && between(ys, i, i + 1, k);
  for (let i = 0; i < n; i++) {
    const next = (i + 1) % n;
    // The next edge may share its first vertex only; its other end, or this edge's start, must not be on the other.
    if (isOn(i, next + 1) || isOn(next, i)) return false;
    for (let j = i + 2; j < n - (i === 0 ? 1 : 0); j++) {
      if (isOn(i, j) || isOn(i, j + 1) || isOn(j, i) || isOn(j, i + 1)) return false;
      const crosses =
        side(i, i + 1, j) * side(i, i + 1, j + 1) < 0 && side(j, j + 1, i) * side(j, j + 1, i + 1) < 0;
      if (crosses) return false;
    }
  }
  return true;
}
