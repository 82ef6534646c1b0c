import type { DescribedError } from '../http/openapi/operation.ts';
import {
  choice,
  ID,
  LAT_LNG,
  LATITUDE,
  LONGITUDE,
  list,
  nullable,
  number,
  ref,
  type Schema,
  shapeOf,
  text,
} from '../http/openapi/schema.ts';
import { ID_MESSAGE } from '../http/parameters.ts';
import { invariant } from '../lib/errors.ts';
import type { FieldError } from '../lib/result.ts';
import type { AreaView, areaName, StoredArea } from './area.ts';
import { completeDraft, parseDraft } from './areaDraft.ts';
import { AREA_ERRORS, AREA_FACTS, AREA_WARNINGS, type AreaWarning } from './areaFields.ts';

// How areas are described as answers, and the areas of the examples.

export const AREA_NAME: Schema = shapeOf<ReturnType<typeof areaName>>({
  id: ID,
  name: AREA_FACTS.name,
  type: AREA_FACTS.type,
  external_id: AREA_FACTS.external_id,
});

const BOUNDS: Schema = shapeOf<AreaView['bounds']>(
  { south: LATITUDE, west: LONGITUDE, north: LATITUDE, east: LONGITUDE },
  {
    description:
      'Of all that is inside, radius and buffer included. West is greater than east where it crosses the antimeridian.',
  },
);

/** The fields that errors name, and the codes of those errors. */
const ERRORS: readonly FieldError[] = Object.values(AREA_ERRORS);
const ERROR_FIELDS = [...new Set(ERRORS.flatMap(({ field }) => (field === null ? [] : [field])))];

/** Codes of details[] about an area, each once. */
export const AREA_ERROR_CODES = [...new Set(ERRORS.map(({ code }) => code))];

export const AREA_SCHEMAS = {
  LatLng: LAT_LNG,
  Area: shapeOf<AreaView>({
    id: ID,
    ...AREA_FACTS,
    center: {
      ...nullable(LAT_LNG),
      description: 'Of circles and points as given, of polygons the centroid.',
    },
    radius_m: nullable(number('Of circles and points.')),
    buffer_m: nullable(number('Of polylines: how far from the line is still inside.')),
    points: list(ref('LatLng'), { description: 'Of polygons (without a closing repetition) and polylines.' }),
    bounds: nullable(BOUNDS),
  }),
  AreaWarning: shapeOf<AreaWarning>({ code: choice(Object.keys(AREA_WARNINGS)), message: text() }),
  AreaFieldError: shapeOf<FieldError>(
    {
      field: nullable(choice([...ERROR_FIELDS, 'Idempotency-Key'], 'null: the body as a whole.')),
      code: choice(AREA_ERROR_CODES, 'More codes may come in the beta; these keep their meaning.'),
      message: text(),
    },
    { description: 'One invalid field of an area.' },
  ),
  Containment: shapeOf<{ inside: boolean; distance_m: number | null }>({
    inside: { type: 'boolean', description: 'A point on the edge is inside.' },
    distance_m: nullable(number('Metres from the edge: negative inside, positive outside.')),
  }),
};

/** The errors of a route about one area. */
export const ONE_AREA: readonly DescribedError[] = [['BAD_REQUEST', ID_MESSAGE], 'NOT_FOUND'];

/** Bodies that create an area, one of each type, from which the areas of the examples are made. */
export const EXAMPLE_AREA_BODIES = {
  circle: {
    name: 'Depot Rome',
    type: 'circle',
    center: { lat: 41.9028, lng: 12.4964 },
    radius_m: 250,
    external_id: 'depot/rome',
    dwell_seconds: 120,
  },
  point: { name: 'Customer 4711', type: 'point', center: { lat: 41.8902, lng: 12.4922 }, color: '#16a34a' },
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
  polyline: {
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
export const EXAMPLE_POLYLINE = areaFrom(EXAMPLE_AREA_BODIES.polyline, 44);
export const EXAMPLE_POINT_AREA = areaFrom(EXAMPLE_AREA_BODIES.point, 45);
