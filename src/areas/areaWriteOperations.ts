import { answered, dataBody } from '../http/openapi/body.ts';
import { envelope } from '../http/openapi/commonSchemas.ts';
import type { Operation, RequestBodyDescription } from '../http/openapi/operation.ts';
import { choice, list, ref, type Schema, shapeOf } from '../http/openapi/schema.ts';
import { AREA_ERRORS } from './areaErrors.ts';
import { areaFrom, EXAMPLE_AREA_BODIES, EXAMPLE_CIRCLE } from './areaExamples.ts';
import { areaView, ONE_AREA } from './areaOperations.ts';
import { AREA_WARNINGS } from './areaWarning.ts';
import { EXTERNAL_ID_MESSAGE, IDEMPOTENCY_KEY_HEADER } from './areaWrites.routes.ts';
import { KEY_MISMATCH, TOO_MANY_KEYS } from './createOnce.ts';
import type { ImportReport } from './import/importAreas.ts';

const WARNINGS = list(ref('AreaWarning'), { minItems: 1, description: 'Only there when there are any.' });
const SAVED_META = shapeOf<{ warnings: unknown }>({ warnings: WARNINGS }, { optional: ['warnings'] });

function upsertMeta(outcome: string): Schema {
  return shapeOf<{ upsert: unknown; warnings: unknown }>(
    { upsert: choice([outcome]), warnings: WARNINGS },
    { optional: ['warnings'] },
  );
}

/** Bodies about one area: JSON by the fields of the API, or GeoJSON. */
const AREA_BODY: Pick<RequestBodyDescription, 'fieldError' | 'contentTypes' | 'errorExamples'> = {
  contentTypes: ['application/geo+json'],
  fieldError: ref('AreaFieldError'),
  errorExamples: {
    'every invalid field at once': [AREA_ERRORS.nameRequired, AREA_ERRORS.circleRadiusOutOfRange],
    'not a JSON object': [AREA_ERRORS.bodyInvalid],
    'more than the plan allows': [AREA_ERRORS.tooManyVertices],
  },
};

const { circle, place, polygon, track, geojson } = EXAMPLE_AREA_BODIES;
const CIRCLE_VIEW = areaView(EXAMPLE_CIRCLE);
/** A few steps wide: it is saved with a warning. */
const TINY_POINTS = [
  { lat: 41.9, lng: 12.5 },
  { lat: 41.9, lng: 12.50005 },
  { lat: 41.90005, lng: 12.5 },
];
const TINY = areaFrom({ ...polygon, points: TINY_POINTS }, 46);

export const CREATE_AREA: Operation = {
  id: 'createArea',
  tag: 'Areas',
  summary: 'Create an area',
  description:
    'LIMIT_REACHED in details: the account has as many areas or vertices, or has used as many Idempotency-Keys within 24 hours, as its plan allows. Nothing is created then.',
  parameters: [IDEMPOTENCY_KEY_HEADER],
  body: {
    ...AREA_BODY,
    schema: ref('AreaInput'),
    examples: { circle, place, polygon, track, geojson },
    errorExamples: {
      ...AREA_BODY.errorExamples,
      'Idempotency-Key used with another body': [KEY_MISMATCH],
      'no room for another area': [AREA_ERRORS.tooManyAreas],
      'no room for another Idempotency-Key': [TOO_MANY_KEYS],
    },
  },
  answers: [
    answered(
      201,
      'The area; it holds on every pod.',
      envelope(ref('Area'), SAVED_META),
      {
        created: dataBody(CIRCLE_VIEW),
        'with a warning': dataBody(areaView(TINY), { warnings: [AREA_WARNINGS.warnVerySmallArea] }),
      },
      ['Location', 'Idempotent-Replayed'],
    ),
  ],
  errors: [['BAD_REQUEST', IDEMPOTENCY_KEY_HEADER.errorMessage], 'CONFLICT'],
};

export const UPSERT_AREA: Operation = {
  id: 'upsertArea',
  tag: 'Areas',
  summary: 'Create or update the area with this external id',
  description:
    'Creates the area when none of the account has the code, else changes what is sent. Repeating the call never makes a second area. A new area needs the fields of POST; an external_id in the body must equal the one of the path.',
  body: {
    ...AREA_BODY,
    schema: ref('AreaChange'),
    examples: { circle },
    errorExamples: {
      ...AREA_BODY.errorExamples,
      'another external_id than in the path': [AREA_ERRORS.externalIdMismatch],
    },
  },
  answers: [
    answered(200, 'The updated area.', envelope(ref('Area'), upsertMeta('updated')), {
      updated: dataBody(CIRCLE_VIEW, { upsert: 'updated' }),
    }),
    answered(
      201,
      'The created area.',
      envelope(ref('Area'), upsertMeta('created')),
      { created: dataBody(CIRCLE_VIEW, { upsert: 'created' }) },
      ['Location'],
    ),
  ],
  errors: [['BAD_REQUEST', EXTERNAL_ID_MESSAGE]],
};

export const PATCH_AREA: Operation = {
  id: 'patchArea',
  tag: 'Areas',
  summary: 'Change fields of an area',
  body: {
    ...AREA_BODY,
    schema: ref('AreaChange'),
    examples: {
      'longer stay': { dwell_seconds: 300 },
      'another type': { type: 'polygon', points: polygon.points },
      'without its code': { external_id: null },
    },
    errorExamples: { ...AREA_BODY.errorExamples, 'external_id in use': [AREA_ERRORS.externalIdTaken] },
  },
  answers: [
    answered(200, 'The whole area as it is now.', envelope(ref('Area'), SAVED_META), {
      changed: dataBody(areaView(areaFrom({ ...circle, dwell_seconds: 300 }, EXAMPLE_CIRCLE.id))),
    }),
  ],
  errors: ONE_AREA,
};

export const DELETE_AREA: Operation = {
  id: 'deleteArea',
  tag: 'Areas',
  summary: 'Delete an area',
  answers: [{ status: 204, description: 'It is gone, on every pod.' }],
  errors: ONE_AREA,
};

export const COLLECTION = {
  type: 'FeatureCollection',
  features: [
    { type: 'Feature', geometry: geojson.geojson.geometry, properties: { name: 'Depot Rome', radius: 250 } },
    { type: 'Feature', geometry: { type: 'Point', coordinates: [12.5, 95] }, properties: { name: 'Typo' } },
  ],
};
export const REPORT: ImportReport = {
  created: [],
  updated: [],
  errors: [{ index: 1, code: 'errCoordinates' }],
  warnings: [],
};
