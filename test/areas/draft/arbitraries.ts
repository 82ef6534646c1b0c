import fc from 'fast-check';
import { anyCharacter } from '../../support/http/anyCharacter.ts';

const anything: fc.Arbitrary<unknown> = fc.anything({
  maxDepth: 3,
  withNullPrototype: true,
});

/** Mostly one of the sound ones, sometimes anything at all. */
const mostly = <T>(...sound: fc.Arbitrary<T>[]): fc.Arbitrary<unknown> =>
  fc.oneof({ weight: 12, arbitrary: fc.oneof(...sound) }, { weight: 1, arbitrary: anything });

const lat = fc.oneof(fc.double({ min: -90, max: 90, noNaN: true }), fc.constantFrom(-90, 90, 0, -0));
const lng = fc.oneof(fc.double({ min: -180, max: 180, noNaN: true }), fc.constantFrom(-180, 180, 0, -0));
const text = fc.oneof(fc.string({ unit: anyCharacter, maxLength: 12 }), fc.string({ maxLength: 110 }));
const nearPositions = fc
  .tuple(
    lat,
    lng,
    fc.array(fc.tuple(fc.integer({ min: 0, max: 6 }), fc.integer({ min: 0, max: 6 })), { maxLength: 7 }),
  )
  .map(([south, west, steps]) =>
    steps.map(([north, east]) => [Math.min(180, west + east / 1_000), Math.min(90, south + north / 1_000)]),
  );
const positions = mostly<unknown>(
  nearPositions,
  fc.array(fc.tuple(lng, lat), { maxLength: 5 }),
  fc.array(anything),
);
const latLng = mostly(fc.record({ lat: mostly(lat), lng: mostly(lng) }));

const jsonPoints = mostly<unknown>(
  nearPositions.map((list) => list.map(([east, north]) => ({ lat: north, lng: east }))),
  fc.array(latLng, { maxLength: 6 }),
);

/** A GeoJSON geometry, or something that looks like one. */
export const anyGeometry: fc.Arbitrary<unknown> = mostly<unknown>(
  fc.record({ type: fc.constant('Point'), coordinates: mostly<unknown>(fc.tuple(lng, lat)) }),
  fc.record({ type: fc.constant('LineString'), coordinates: positions }),
  fc.record({ type: fc.constant('Polygon'), coordinates: fc.array(positions, { maxLength: 2 }) }),
  fc.record({ type: fc.constant('MultiPoint'), coordinates: positions }),
  fc.record({ type: fc.constant('MultiLineString'), coordinates: fc.array(positions, { maxLength: 3 }) }),
  fc.record({
    type: fc.constant('MultiPolygon'),
    coordinates: fc.array(fc.array(positions, { maxLength: 2 }), { maxLength: 3 }),
  }),
  fc.record({ type: fc.constantFrom('GeometryCollection', 'Curve', 'Feature'), coordinates: anything }),
);

const color = mostly(fc.constantFrom('#3b82f6', '#ABCDEF'));
const code = mostly<unknown>(fc.constantFrom('a', 'b:1', 'c/d', null));
const dwell = mostly(fc.integer({ min: 0, max: 86_400 }));
const metres = mostly(fc.double({ min: 5, max: 100_000, noNaN: true }), fc.double());
const type = mostly(fc.constantFrom('circle', 'point', 'polygon', 'polyline'));

/** A Feature, or something that looks like one. */
export const anyFeature: fc.Arbitrary<unknown> = mostly(
  fc.record({
    type: fc.constant('Feature'),
    geometry: anyGeometry,
    properties: mostly(
      fc.record(
        {
          name: mostly(text),
          title: mostly(text),
          color,
          stroke: color,
          radius: metres,
          bufferDistance: metres,
          buffer_distance: metres,
          external_id: code,
          dwell_seconds: dwell,
          type,
        },
        { requiredKeys: ['name'] },
      ),
    ),
  }),
);

/** A body of POST, PUT or PATCH, or something that looks like one. */
export const anyBody: fc.Arbitrary<unknown> = mostly<unknown>(
  fc.record(
    {
      name: mostly(text),
      color,
      type,
      center: latLng,
      radius_m: metres,
      buffer_m: metres,
      points: jsonPoints,
      external_id: code,
      dwell_seconds: dwell,
    },
    { requiredKeys: ['name', 'type', 'center', 'points', 'radius_m'] },
  ),
  fc.record({ name: mostly(text), geojson: fc.oneof(anyGeometry, anyFeature), dwell_seconds: dwell }),
);

/** A body of the import route, or something that looks like one. */
export const anyImport: fc.Arbitrary<unknown> = mostly<unknown>(
  fc.record({
    type: fc.constant('FeatureCollection'),
    features: mostly(fc.array(anyFeature, { maxLength: 6 })),
  }),
  fc.record({
    geojson: fc.record({
      type: fc.constant('FeatureCollection'),
      features: fc.array(anyFeature, { maxLength: 6 }),
    }),
    dry_run: mostly(fc.boolean()),
  }),
  anyFeature,
  anyGeometry,
);
