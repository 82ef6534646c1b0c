import { EXAMPLE_POINT } from '../devices/deviceExamples.ts';
import { ID_MESSAGE } from '../http/id.ts';
import type { DescribedError } from '../http/openapi/operation.ts';
import { integer } from '../http/openapi/schema.ts';
import { LIST_LIMIT } from '../http/parameters.ts';
import { formatIso } from '../lib/isoTime.ts';
import { toLatLngs } from './area.ts';
import { EXAMPLE_CIRCLE, EXAMPLE_PLACE, EXAMPLE_POLYGON, EXAMPLE_TRACK } from './areaExamples.ts';
import { compileShape } from './shape.ts';
import type { StoredArea } from './storedArea.ts';

/** The errors of a route about one area. */
export const ONE_AREA: readonly DescribedError[] = [['BAD_REQUEST', ID_MESSAGE], 'NOT_FOUND'];

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
