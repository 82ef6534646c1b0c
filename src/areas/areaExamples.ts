import { EXAMPLE_POINT } from '../devices/deviceViews.ts';
import type { DescribedError } from '../http/openapi/operation.ts';
import { integer } from '../http/openapi/schema.ts';
import { ID_MESSAGE } from '../http/parameters/id.ts';
import { LIST_LIMIT } from '../http/parameters/parameters.ts';
import { invariant } from '../lib/invariant.ts';
import { formatIso } from '../lib/isoTime.ts';
import { toLatLngs } from './area.ts';
import type { StoredArea } from './areaMeasures.ts';
import { completeDraft } from './draft/mergeDraft.ts';
import { parseDraft } from './draft/parseDraft.ts';
import { compileShape } from './shape.ts';

/** The errors of a route about one area. */
export const ONE_AREA: readonly DescribedError[] = [['BAD_REQUEST', ID_MESSAGE], 'NOT_FOUND'];

/** Bodies that create an area, one of each type; the code itself makes the areas of the examples from them. */
export const EXAMPLE_AREA_BODIES = {
  circle: {
    name: 'Depot Rome',
    type: 'circle',
    center: { lat: 41.9028, lng: 12.4964 },
    radius_m: 250,
    external_id: 'depot/rome',
    dwell_seconds: 120,
  },
  place: { name: 'Customer 4711', type: 'point', center: { lat: 41.8902, lng: 12.4922 }, color: '#16a34a' },
  polygon: {
    name: 'Old town',
    type: 'polygon',
    points: [
      { lat: 41.906, lng: 12.47 },
      { lat: 41.906, lng: 12.485 },
      { lat: 41.894, lng: 12.485 },
      { lat: 41.894, lng: 12.47 },
    ],
  },
  track: {
    name: 'Delivery route 3',
    type: 'polyline',
    buffer_m: 80,
    points: [
      { lat: 41.9, lng: 12.48 },
      { lat: 41.91, lng: 12.49 },
      { lat: 41.915, lng: 12.51 },
    ],
  },
  geojson: {
    geojson: {
      type: 'Feature',
      geometry: { type: 'Point', coordinates: [12.4964, 41.9028] },
      properties: { name: 'Depot Rome', radius: 250, external_id: 'depot/rome' },
    },
    dwell_seconds: 120,
  },
} as const;

/** The area that a body creates, as it is stored under this id. */
export function areaFrom(body: object, id: number): StoredArea {
  const draft = parseDraft(body);
  const area = draft.ok ? completeDraft(draft.value) : draft;
  invariant(area.ok, 'the bodies of the examples are valid');
  const { definition, measures } = area.value;
  const createdAtMs = Date.UTC(2026, 0, 15, 10);
  return { id, worldId: 1, accountId: 1, definition, measures, createdAtMs, revision: 1 };
}

export const EXAMPLE_CIRCLE = areaFrom(EXAMPLE_AREA_BODIES.circle, 42);
export const EXAMPLE_POLYGON = areaFrom(EXAMPLE_AREA_BODIES.polygon, 43);
export const EXAMPLE_TRACK = areaFrom(EXAMPLE_AREA_BODIES.track, 44);
export const EXAMPLE_PLACE = areaFrom(EXAMPLE_AREA_BODIES.place, 45);

export const ALL_TYPES = [EXAMPLE_CIRCLE, EXAMPLE_POLYGON, EXAMPLE_TRACK, EXAMPLE_PLACE];
export const TOTAL = { total: integer('How many areas the filters leave.', { minimum: 0 }) };
export const PAGE_META = {
  pagination: { limit: LIST_LIMIT.fallback, offset: 0, count: ALL_TYPES.length },
  total: ALL_TYPES.length,
};

export const CIRCLE = compileShape(EXAMPLE_CIRCLE.definition);

export const { id, name, type, external_id } = areaView(EXAMPLE_CIRCLE);
export const DISTANCE_M = compileShape(EXAMPLE_CIRCLE.definition).signedDistanceM(
  EXAMPLE_POINT.lat,
  EXAMPLE_POINT.lng,
);

/** Wire form of an area, field by field as the API document lists them. */
export function areaView({ id, definition, measures, createdAtMs }: StoredArea) {
  const { geometry } = definition;
  return {
    id,
    name: definition.name,
    color: definition.color,
    type: geometry.type,
    center: measures.center,
    radius_m: 'radiusM' in geometry ? geometry.radiusM : null,
    buffer_m: 'bufferM' in geometry ? geometry.bufferM : null,
    points: 'points' in geometry ? toLatLngs(geometry.points) : [],
    external_id: definition.externalId,
    dwell_seconds: definition.dwellSeconds,
    metrics: { area_m2: measures.areaM2, perimeter_m: measures.perimeterM, length_m: measures.lengthM },
    bounds: measures.bounds,
    created_at: formatIso(createdAtMs),
  };
}
