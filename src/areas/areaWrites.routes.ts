import { scopeMask } from '../access/scopes.ts';
import { type Answer, errorAnswer, validationAnswer } from '../http/answer.ts';
import type { Operation, RequestBodyDescription } from '../http/openapi/operation.ts';
import { answered, dataBody } from '../http/openapi/operation.ts';
import type { Schema } from '../http/openapi/schema.ts';
import { choice, defaulting, envelope, list, nullable, ref, shapeOf } from '../http/openapi/schema.ts';
import { idOf, malformedId, type Parameter } from '../http/parameters.ts';
import { jsonBody } from '../http/requestBody.ts';
import { type Call, type ChangePorts, type RequestBody, type Route, routeFactory } from '../http/route.ts';
import { fail, type Result } from '../lib/result.ts';
import { type AreaType, areaView } from './area.ts';
import { type AreaDraft, parseDraft } from './areaDraft.ts';
import {
  AREA_ERRORS,
  AREA_WARNINGS,
  DEFAULT_COLOR,
  FIELD_SCHEMAS as FIELDS,
  isExternalId,
  AREA_LIMITS as LIMITS,
} from './areaFields.ts';
import { areaFrom, EXAMPLE_AREA_BODIES, EXAMPLE_CIRCLE, ONE_AREA } from './areaSchemas.ts';
import { type CreateOnce, IDEMPOTENCY_KEY, KEY_MISMATCH, TOO_MANY_KEYS } from './createOnce.sql.ts';
import type { SavedArea, SaveOutcome } from './saveArea.ts';
import { createArea, patchArea, removeArea, upsertArea } from './saveArea.ts';

/** The answer to a malformed external id in the path. */
const EXTERNAL_ID_MESSAGE = 'an external id has 1 to 100 letters, digits and . _ : / @ # -';

const IDEMPOTENCY_KEY_HEADER = {
  name: 'Idempotency-Key',
  in: 'header',
  required: false,
  description:
    'Repeating the call with the same key and body within 24 hours gives the first answer again instead of another area.',
  schema: { type: 'string', pattern: IDEMPOTENCY_KEY.source },
  errorMessage: 'an Idempotency-Key has 1 to 200 letters, digits and . _ : -',
} as const satisfies Parameter & { errorMessage: string };

interface AreaWritePorts extends ChangePorts {
  readonly createOnce: CreateOnce;
}

/** Create, upsert, change and delete an area. Each is acknowledged when it holds on every pod. */
export function areaWriteRoutes(ports: AreaWritePorts): Route[] {
  const write = routeFactory({
    scopes: scopeMask('write_areas'),
    isOpenToGroups: true,
    versions: ['v3'],
    shedAs: 'poll',
  });
  return [
    write('POST', '/areas', CREATE_AREA, (call) => create(ports, call)),
    write('PUT', '/areas/by-external-id/*externalId', UPSERT_AREA, (call) => upsert(ports, call)),
    write('PATCH', '/areas/:id', PATCH_AREA, (call) => patch(ports, call)),
    write('DELETE', '/areas/:id', DELETE_AREA, (call) => remove(ports, call)),
  ];
}

async function create({ writes, createOnce }: AreaWritePorts, call: Call): Promise<Answer> {
  const { caller } = call;
  const key = call.header('idempotency-key') ?? null;
  if (key !== null && !IDEMPOTENCY_KEY.test(key)) {
    return errorAnswer('BAD_REQUEST', IDEMPOTENCY_KEY_HEADER.errorMessage);
  }
  const body = jsonBody(call.body);
  if (!body.ok) return body.error;
  const draft = parseDraft(body.value);
  if (!draft.ok) return validationAnswer(draft.error);
  const ports = writes(caller.accountId);
  const outcome =
    key === null
      ? await createArea(ports, caller, draft.value)
      : await createOnce.create(ports, caller, { draft: draft.value, key, body: body.value }, savedBody);
  switch (outcome.kind) {
    case 'replayed':
      return createdAnswer(outcome.areaId, outcome.body, { 'Idempotent-Replayed': 'true' });
    case 'key_mismatch':
      return validationAnswer([KEY_MISMATCH]);
    case 'external_id_taken':
      return errorAnswer('CONFLICT');
    default:
      return saveAnswer(outcome, {});
  }
}

async function upsert({ writes }: AreaWritePorts, call: Call): Promise<Answer> {
  const externalId = call.params['externalId'] ?? '';
  if (!isExternalId(externalId)) {
    return errorAnswer('BAD_REQUEST', EXTERNAL_ID_MESSAGE);
  }
  const draft = draftOf(call.body);
  if (!draft.ok) return draft.error;
  const outcome = await upsertArea(writes(call.caller.accountId), call.caller, externalId, draft.value);
  return saveAnswer(outcome, { upsert: outcome.kind });
}

async function patch({ writes }: AreaWritePorts, call: Call): Promise<Answer> {
  const id = idOf(call.params);
  if (id === null) return malformedId();
  const draft = draftOf(call.body);
  if (!draft.ok) return draft.error;
  return saveAnswer(await patchArea(writes(call.caller.accountId), call.caller, id, draft.value), {});
}

async function remove({ writes }: AreaWritePorts, call: Call): Promise<Answer> {
  const id = idOf(call.params);
  if (id === null) return malformedId();
  const removed = await removeArea(writes(call.caller.accountId), call.caller, id);
  return removed ? { status: 204, body: null } : errorAnswer('NOT_FOUND');
}

function saveAnswer(outcome: SaveOutcome, meta: Readonly<Record<string, unknown>>): Answer {
  switch (outcome.kind) {
    case 'created':
      return createdAnswer(outcome.area.id, savedBody(outcome, meta), {});
    case 'updated':
      return { status: 200, body: savedBody(outcome, meta) };
    case 'invalid':
      return validationAnswer(outcome.errors);
    case 'external_id_taken':
      return validationAnswer([AREA_ERRORS.externalIdTaken]);
    case 'not_found':
      return errorAnswer('NOT_FOUND');
  }
}

function createdAnswer(id: number, body: string, headers: Readonly<Record<string, string>>): Answer {
  return { status: 201, body, headers: { Location: `/api/v3/areas/${id}`, ...headers } };
}

function savedBody({ area, warnings }: SavedArea, meta: Readonly<Record<string, unknown>> = {}): string {
  return JSON.stringify({ data: areaView(area), meta: warnings.length === 0 ? meta : { ...meta, warnings } });
}

function draftOf(body: RequestBody | null): Result<AreaDraft, Answer> {
  const json = jsonBody(body);
  if (!json.ok) return json;
  const draft = parseDraft(json.value);
  return draft.ok ? draft : fail(validationAnswer(draft.error));
}

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

const { circle, polygon } = EXAMPLE_AREA_BODIES;
const CIRCLE_VIEW = areaView(EXAMPLE_CIRCLE);
/** A few steps wide: it is saved with a warning. */
const TINY_POINTS = [
  { lat: 41.9, lng: 12.5 },
  { lat: 41.9, lng: 12.50005 },
  { lat: 41.90005, lng: 12.5 },
];
const TINY = areaFrom({ ...polygon, points: TINY_POINTS }, 46);

const CREATE_AREA: Operation = {
  id: 'createArea',
  tag: 'Areas',
  summary: 'Create an area',
  description:
    'LIMIT_REACHED in details: the account has as many areas or vertices, or has used as many Idempotency-Keys within 24 hours, as its plan allows. Nothing is created then.',
  parameters: [IDEMPOTENCY_KEY_HEADER],
  body: {
    ...AREA_BODY,
    schema: ref('AreaInput'),
    examples: EXAMPLE_AREA_BODIES,
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

const UPSERT_AREA: Operation = {
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

const PATCH_AREA: Operation = {
  id: 'patchArea',
  tag: 'Areas',
  summary: 'Change fields of an area',
  body: {
    ...AREA_BODY,
    schema: ref('AreaChange'),
    examples: {
      'longer stay': { dwell_seconds: 300 },
      'another type': { type: 'polygon', points: polygon.points },
      'without its external id': { external_id: null },
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

const DELETE_AREA: Operation = {
  id: 'deleteArea',
  tag: 'Areas',
  summary: 'Delete an area',
  answers: [{ status: 204, description: 'It is gone, on every pod.' }],
  errors: ONE_AREA,
};

/** What may be sent beside every geometry. null acts as not sent, except in external_id, where it removes the id. */
const OPTIONAL = {
  color: defaulting(nullable(FIELDS.color), DEFAULT_COLOR),
  external_id: nullable(FIELDS.external_id),
  dwell_seconds: defaulting(nullable(FIELDS.dwell_seconds), 0),
};

/** A new area of this type: `required` must be there and the rest may. */
function inputOf(
  type: AreaType,
  required: Readonly<Record<string, Schema>>,
  optional: Readonly<Record<string, Schema>> = {},
): Schema {
  const own = { name: FIELDS.name, type: choice([type]), ...required };
  return { type: 'object', required: Object.keys(own), properties: { ...own, ...optional, ...OPTIONAL } };
}

const GEOJSON: Schema = { oneOf: [ref('GeoJsonFeature'), ref('GeoJsonGeometry')] };
const INPUTS = {
  CircleInput: inputOf('circle', { center: FIELDS.center, radius_m: FIELDS.circle_radius_m }),
  PointInput: inputOf(
    'point',
    { center: FIELDS.center },
    { radius_m: defaulting(nullable(FIELDS.radius_m), LIMITS.defaultPointRadiusM) },
  ),
  PolygonInput: inputOf('polygon', { points: FIELDS.polygon_points }),
  PolylineInput: inputOf(
    'polyline',
    { points: FIELDS.polyline_points },
    { buffer_m: defaulting(nullable(FIELDS.buffer_m), LIMITS.defaultBufferM) },
  ),
  GeoJsonInput: {
    type: 'object',
    description:
      'A Point becomes a point (a circle when properties.radius is there), a LineString a polyline, a Polygon a polygon. Fields beside `geojson` win over its properties.',
    required: ['geojson'],
    properties: {
      geojson: GEOJSON,
      name: nullable(FIELDS.name),
      type: nullable(FIELDS.type),
      radius_m: nullable(FIELDS.radius_m),
      buffer_m: nullable(FIELDS.buffer_m),
      ...OPTIONAL,
    },
  },
} as const satisfies Readonly<Record<string, Schema>>;

/** Bodies that create or change one area. Fields of another type are ignored, so what was read may be sent back. */
export const AREA_INPUT_SCHEMAS: Readonly<Record<string, Schema>> = {
  ...INPUTS,
  AreaInput: { oneOf: Object.keys(INPUTS).map(ref) },
  AreaChange: {
    type: 'object',
    description:
      'Only what is sent changes. Another type needs its whole geometry. `external_id: null` removes the external id; null elsewhere acts as not sent.',
    properties: {
      name: nullable(FIELDS.name),
      type: nullable(FIELDS.type),
      center: nullable(FIELDS.center),
      radius_m: nullable(FIELDS.radius_m),
      buffer_m: nullable(FIELDS.buffer_m),
      points: nullable(FIELDS.points),
      geojson: { ...GEOJSON, description: 'The geometry as GeoJSON, in place of center or points.' },
      ...OPTIONAL,
    },
  },
};
