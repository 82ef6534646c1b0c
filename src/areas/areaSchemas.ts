import { ID, LAT_LNG, LATITUDE, LONGITUDE } from '../http/openapi/commonSchemas.ts';
import {
  choice,
  integer,
  list,
  nullable,
  number,
  patternOf,
  ref,
  type Schema,
  shapeOf,
  text,
  time,
} from '../http/openapi/schema.ts';
import type { FieldError } from '../lib/fieldError.ts';
import { AREA_TYPES } from './area.ts';
import type { areaView } from './areaExamples.ts';
import { AREA_ERRORS } from './draft/areaErrors.ts';
import { AREA_LIMITS as LIMITS } from './draft/areaLimits.ts';
import { AREA_WARNINGS, type AreaWarning, type WarningCode } from './draft/areaWarning.ts';
import { COLOR } from './draft/sentFields.ts';

type AreaView = ReturnType<typeof areaView>;

const METRICS: Schema = shapeOf<AreaView['metrics']>({
  area_m2: nullable(number('Of polygons and circles.')),
  perimeter_m: nullable(number('Of polygons and circles.')),
  length_m: nullable(number('Of tracks.')),
});

const BOUNDS: Schema = shapeOf<AreaView['bounds']>(
  { south: LATITUDE, west: LONGITUDE, north: LATITUDE, east: LONGITUDE },
  {
    description:
      'Of all that is inside, radius and margin included. West is greater than east where it crosses the antimeridian.',
  },
);

const WARNING_CODES = Object.keys(AREA_WARNINGS) as WarningCode[];

/** The fields that errors name, and the codes of those errors. */
const ERRORS: readonly FieldError[] = [...Object.values(AREA_ERRORS)];
const ERROR_FIELDS = [...new Set(ERRORS.flatMap(({ field }) => (field === null ? [] : [field])))];

/** Codes of details[] about an area, each once. */
export const AREA_ERROR_CODES = [...new Set(ERRORS.map(({ code }) => code))];

/** What every answer has of an area beside its geometry. */
export const AREA_FACTS = {
  name: text(undefined, { minLength: 1, maxLength: LIMITS.nameMaxCodePoints }),
  color: text('#rrggbb', { pattern: patternOf(COLOR) }),
  type: choice(AREA_TYPES),
  external_id: nullable(text("The area's code in the caller's own system.")),
  dwell_seconds: integer('Minimum stay before an entry is reported.', {
    minimum: 0,
    maximum: LIMITS.maxDwellSeconds,
  }),
  metrics: METRICS,
  created_at: nullable(time()),
};

export const AREA_SCHEMAS = {
  LatLng: LAT_LNG,
  Area: shapeOf<AreaView>({
    id: ID,
    ...AREA_FACTS,
    center: {
      ...nullable(LAT_LNG),
      description: 'Of circles and places as given, of polygons the centroid.',
    },
    radius_m: nullable(number('Of circles and places.')),
    buffer_m: nullable(number('Of tracks: how far from the line is still inside.')),
    points: list(ref('LatLng'), { description: 'Of polygons (without a closing repetition) and tracks.' }),
    bounds: nullable(BOUNDS),
  }),
  AreaWarning: shapeOf<AreaWarning>({ code: choice(WARNING_CODES), message: text() }),
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
