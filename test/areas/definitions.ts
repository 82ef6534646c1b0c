import fc from 'fast-check';
import {
  type AreaDefinition,
  type AreaGeometry,
  toLatLngs,
  toVertices,
  validatePoints,
} from '../../src/areas/area.ts';
import type { LatLng } from '../../src/geo/wgs84.ts';

/** The same meridian's name within [-180, 180]. */
export function wrapLng(lng: number): number {
  return round(lng > 180 ? lng - 360 : lng < -180 ? lng + 360 : lng);
}

/** To a ten-thousandth of a millimetre: nearer to a whole number than that, a turn more loses the difference. */
export function round(degrees: number): number {
  return Math.round(degrees * 1e9) / 1e9 + 0;
}

// Centres everywhere, and often where maps break.
const lat = fc.oneof(
  fc.double({ min: -89.9, max: 89.9, noNaN: true }).map(round),
  fc.constantFrom(0, 89.5, -89.99, 66, 41.9),
);
const lng = fc.oneof(
  fc.double({ min: -180, max: 180, noNaN: true }).map(round),
  fc.constantFrom(180, -180, 179.999, -179.5, 0),
);
const plain = { noNullPrototype: true };
const center = fc.record({ lat: fc.oneof(lat, fc.constantFrom(90, -90)), lng }, plain);
const spanDegrees = fc.constantFrom(0.001, 0.05, 1, 12, 40);

const disc: fc.Arbitrary<AreaGeometry> = fc.record(
  {
    type: fc.constantFrom('circle' as const, 'point' as const),
    center,
    radiusM: fc.oneof(fc.double({ min: 25, max: 100_000, noNaN: true }), fc.constantFrom(25, 100_000)),
  },
  plain,
);

const track: fc.Arbitrary<AreaGeometry> = fc
  .tuple(center, spanDegrees, steps(2, 20), fc.double({ min: 5, max: 5_000, noNaN: true }))
  .map(([start, span, list, bufferM]) => {
    const points = [start];
    for (const { north, east } of list) {
      const last = points[points.length - 1]!;
      points.push({
        lat: round(Math.max(-90, Math.min(90, last.lat + north * span))),
        lng: wrapLng(last.lng + east * span),
      });
    }
    return { type: 'polyline' as const, points, bufferM };
  })
  // Steps along a pole lead nowhere; between two names of the antimeridian they even look the same in GeoJSON.
  .filter(({ points }) =>
    points.every(({ lat: north }, i) => i === 0 || Math.abs(north) < 90 || points[i - 1]!.lat !== north),
  )
  .filter(({ points }) => validatePoints('polyline', points).ok)
  .map((geometry) => ({ ...geometry, points: normalised('polyline', geometry.points) }));

/** Vertices all around a middle, the nearer and farther ones at random; in either winding. */
const star: fc.Arbitrary<AreaGeometry> = fc
  .tuple(
    fc.record({ lat, lng }),
    spanDegrees,
    fc.array(fc.double({ min: 0.3, max: 1, noNaN: true }), { minLength: 3, maxLength: 60 }),
    fc.boolean(),
  )
  .map(([middle, span, reaches, clockwise]) => {
    const points = reaches.map((reach, i) => {
      const angle = (2 * Math.PI * i) / reaches.length;
      return {
        lat: round(Math.max(-90, Math.min(90, middle.lat + reach * span * Math.sin(angle)))),
        lng: wrapLng(middle.lng + reach * span * Math.cos(angle)),
      };
    });
    return clockwise ? points.reverse() : points;
  })
  .filter((points) => validatePoints('polygon', points).ok)
  .map((points) => ({ type: 'polygon' as const, points: normalised('polygon', points) }));

/** Around a pole. */
const polar: fc.Arbitrary<AreaGeometry> = fc
  .tuple(
    fc.constantFrom(1, -1),
    fc.array(fc.double({ min: 50, max: 89, noNaN: true }), { minLength: 3, maxLength: 30 }),
    lng,
    fc.boolean(),
  )
  .map(([hemisphere, lats, first, clockwise]) => {
    const points = lats.map((north, i) => ({
      lat: round(hemisphere * north),
      lng: wrapLng(first + (i * 360) / lats.length),
    }));
    return clockwise ? points.reverse() : points;
  })
  .filter((points) => validatePoints('polygon', points).ok)
  .map((points) => ({ type: 'polygon' as const, points: normalised('polygon', points) }));

export const anySoundGeometry: fc.Arbitrary<AreaGeometry> = fc.oneof(disc, track, star, polar);

/** A definition as it may be stored, of any type and anywhere. */
export const anyDefinition: fc.Arbitrary<AreaDefinition> = fc.record(
  {
    name: fc.constantFrom('Depot', 'Fiji 🚚', '"é"'),
    color: fc.constantFrom('#3b82f6', '#ABCDEF'),
    geometry: anySoundGeometry,
    externalId: fc.constantFrom(null, 'x:1', 'a/b'),
    dwellSeconds: fc.constantFrom(0, 60, 86_400),
  },
  plain,
);

const anyPosition = fc.record({
  lat: fc.oneof(fc.double({ min: -90, max: 90, noNaN: true }).map(round), fc.constantFrom(-90, 90)),
  lng: fc.oneof(fc.double({ min: -180, max: 180, noNaN: true }).map(round), fc.constantFrom(-180, 180)),
});

/** A shape with positions on it, near it and far from it. */
export const geometryAndPositions = fc
  .tuple(
    anySoundGeometry,
    fc.array(anyPosition, { minLength: 3, maxLength: 3 }),
    fc.array(
      fc.tuple(
        fc.nat(),
        fc.double({ min: -2, max: 2, noNaN: true }),
        fc.double({ min: -2, max: 2, noNaN: true }),
      ),
      { minLength: 12, maxLength: 12 },
    ),
  )
  .map(([geometry, far, nudges]) => {
    const vertices = 'points' in geometry ? toLatLngs(geometry.points) : [geometry.center];
    const near = nudges.map(([k, north, east], i) => {
      const vertex = vertices[k % vertices.length]!;
      const reach = 10 ** -(i % 7);
      return {
        lat: round(Math.max(-90, Math.min(90, vertex.lat + north * reach))),
        lng: wrapLng(vertex.lng + east * reach),
      };
    });
    return { geometry, vertices, positions: [...far, ...near, ...vertices] };
  });

function steps(minLength: number, maxLength: number): fc.Arbitrary<{ north: number; east: number }[]> {
  const step = fc.double({ min: -1, max: 1, noNaN: true });
  return fc.array(fc.record({ north: step, east: step }), {
    minLength: minLength - 1,
    maxLength: maxLength - 1,
  });
}

function normalised(type: 'polygon' | 'polyline', points: readonly LatLng[]): Float64Array {
  const validated = validatePoints(type, points);
  return validated.ok ? validated.value.points : toVertices(points);
}
