import { scopeMask } from '../../access/scopes.ts';
import { type Answer, ERRORS, errorAnswer, type TextAnswer, validationAnswer } from '../../http/answer.ts';
import { answered, bodyOf, type Operation } from '../../http/openapi/operation.ts';
import type { Schema } from '../../http/openapi/schema.ts';
import { choice, envelope, ID, integer, list, ref, shapeOf, text } from '../../http/openapi/schema.ts';
import { choiceParameter, parameterError, readChoice } from '../../http/parameters.ts';
import { notJsonAnswer } from '../../http/requestBody.ts';
import type { Call, ChangePorts, Route } from '../../http/route.ts';
import { Overloaded } from '../../lib/fairSemaphore.ts';
import { AREA_ERRORS } from '../areaFields.ts';
import { AREA_ERROR_CODES, EXAMPLE_AREA_BODIES } from '../areaSchemas.ts';
import type { ImportReport, ImportWarning } from './importAreas.ts';
import { dryRunImport, IMPORT_WARNINGS, importAreas } from './importAreas.ts';
import type { ImportError, PlanReply } from './importPlan.ts';
import { IMPORT_LIMITS, MAX_IMPORT_VALUES, READING_CODES } from './importPlan.ts';
import { ImportOverload, type ImportPlanner, ImportTooLarge } from './importPlanner.ts';

const COLLECTION = {
  type: 'FeatureCollection',
  features: [
    {
      type: 'Feature',
      geometry: EXAMPLE_AREA_BODIES.geojson.geojson.geometry,
      properties: { name: 'Depot Rome', radius: 250 },
    },
    { type: 'Feature', geometry: { type: 'Point', coordinates: [12.5, 95] }, properties: { name: 'Typo' } },
  ],
};
const REPORT: ImportReport = {
  created: [],
  updated: [],
  errors: [{ index: 1, code: 'errCoordinates' }],
  warnings: [],
};

export const DRY_RUN = {
  ...choiceParameter(
    'dry_run',
    ['true', 'false'],
    'Says what would happen, without saving anything. `dry_run: true` in the body does the same.',
  ),
  schema: { type: 'boolean', default: false },
} as const;

const IMPORT_AREAS: Operation = {
  id: 'importAreas',
  tag: 'Areas',
  summary: 'Import areas from GeoJSON',
  description: `At most ${IMPORT_LIMITS.features} features. An invalid one does not block the others; Multi* geometries become one area per part. A feature with properties.external_id updates the area that has this code. What the plan of the account has no room for is LIMIT_REACHED in errors, once for each feature; the others are saved, in their order.`,
  parameters: [DRY_RUN],
  body: {
    contentTypes: ['application/geo+json'],
    schema: ref('ImportInput'),
    examples: { collection: COLLECTION, 'dry run': { geojson: COLLECTION, dry_run: true } },
    fieldError: ref('AreaFieldError'),
    errorExamples: { 'no GeoJSON': [AREA_ERRORS.importInvalid] },
    report: {
      description:
        '`VALIDATION_ERROR`: the body is not GeoJSON, or no feature made a valid area. In the second case `details` is empty, and `data` reports on each feature.',
      schema: ref('ImportReport'),
      examples: { 'nothing valid': { value: bodyOf(importAnswer(REPORT, false)) } },
    },
  },
  answers: [
    answered(200, 'A dry run, or only updates.', envelope(ref('ImportReport')), {
      'dry run': bodyOf(importAnswer({ ...REPORT, created: [{ index: 0 }] }, true)),
    }),
    answered(201, 'At least one area was created.', envelope(ref('ImportReport')), {
      created: bodyOf(importAnswer({ ...REPORT, created: [{ index: 0, id: 42 }] }, false)),
    }),
  ],
};

const MAX_BODY_BYTES = 32 * 1024 * 1024;
const DEADLINE_MS = 120_000;

interface AreaImportPorts extends ChangePorts {
  readonly planner: ImportPlanner;
}

/** Many areas in one call, saved in one transaction; with dry_run only what would happen. */
export function areaImportRoute(ports: AreaImportPorts): Route {
  return {
    method: 'POST',
    path: '/areas/import',
    scopes: scopeMask('write_areas'),
    isOpenToGroups: true,
    versions: ['v3'],
    shedAs: 'bulk',
    maxBodyBytes: MAX_BODY_BYTES,
    takesPieces: true,
    deadlineMs: DEADLINE_MS,
    describe: IMPORT_AREAS,
    handle: (call) => run(ports, call),
  };
}

async function run({ writes, planner }: AreaImportPorts, call: Call): Promise<Answer> {
  const queryDryRun = readChoice(call.query, DRY_RUN);
  if (queryDryRun === 'invalid') return parameterError(DRY_RUN);
  if (call.body?.isJson !== true) return notJsonAnswer(call.body);
  const plan = await planOf(planner, call.caller.accountId, call.body.pieces);
  if ('status' in plan) return plan;
  if (!plan.ok) {
    return plan.error === 'too_many_values'
      ? errorAnswer('PAYLOAD_TOO_LARGE', TOO_MANY_VALUES)
      : validationAnswer(plan.error);
  }
  const dryRun = queryDryRun === 'true' || plan.value.dryRun;
  const ports = writes(call.caller.accountId);
  const report = await (dryRun ? dryRunImport : importAreas)(ports, call.caller, plan.value);
  return importAnswer(report, dryRun);
}

const TOO_MANY_VALUES = `the body holds more than ${MAX_IMPORT_VALUES} values and names`;

async function planOf(
  planner: ImportPlanner,
  accountId: number,
  pieces: readonly Buffer[],
): Promise<PlanReply | Answer> {
  try {
    return await planner.plan(accountId, pieces);
  } catch (error) {
    if (error instanceof ImportTooLarge) return errorAnswer('PAYLOAD_TOO_LARGE', error.message);
    if (error instanceof ImportOverload || error instanceof Overloaded)
      return errorAnswer('SERVICE_UNAVAILABLE', `${error.message}; try again shortly`);
    throw error;
  }
}

/**
 * The answer to an import: 200 for a dry run or for updates only, 201 when an area was created, 422 when none was
 * valid; then the report is beside the error.
 */
function importAnswer(report: ImportReport, dryRun: boolean): TextAnswer {
  const valid = report.created.length + report.updated.length;
  const data = { dry_run: dryRun, valid, ...report };
  if (valid > 0 || dryRun) {
    const status = !dryRun && report.created.length > 0 ? 201 : 200;
    return { status, body: JSON.stringify({ data, meta: {} }) };
  }
  const [status] = ERRORS.VALIDATION_ERROR;
  const error = { code: 'VALIDATION_ERROR', message: 'no feature made a valid area', details: [] };
  return { status, body: JSON.stringify({ error, data }) };
}

const INDEX = integer('Of the feature, from 0.', { minimum: 0 });

type Entry<Name extends 'created' | 'updated'> = ImportReport[Name][number];

export const IMPORT_SCHEMAS = {
  ImportInput: {
    oneOf: [
      ref('GeoJsonFeatureCollection'),
      ref('GeoJsonFeature'),
      ref('GeoJsonGeometry'),
      {
        type: 'object',
        required: ['geojson'],
        properties: {
          geojson: {
            oneOf: [ref('GeoJsonFeatureCollection'), ref('GeoJsonFeature'), ref('GeoJsonGeometry')],
          },
          dry_run: { type: 'boolean' },
        },
      },
    ],
  },
  ImportReport: shapeOf<ImportReport & { dry_run: boolean; valid: number }>(
    {
      dry_run: { type: 'boolean' },
      valid: integer('How many areas were made or would be.', { minimum: 0 }),
      created: list(
        shapeOf<Entry<'created'>>(
          { index: INDEX, id: ID },
          { optional: ['id'], description: 'id: not in a dry run.' },
        ),
      ),
      updated: list(
        shapeOf<Entry<'updated'>>({ index: INDEX, id: ID, external_id: text() }, { optional: ['id'] }),
      ),
      errors: list(ref('ImportError')),
      warnings: list(shapeOf<ImportWarning>({ index: INDEX, code: choice([...IMPORT_WARNINGS]) })),
      left_out: integer(
        `How many features came after the first ${IMPORT_LIMITS.features} and were not looked at; missing when there were none.`,
        { minimum: 1 },
      ),
    },
    { optional: ['left_out'] },
  ),
  ImportError: shapeOf<ImportError>(
    {
      index: integer(
        `Of the feature, from 0; -1 for the call as a whole (more than ${IMPORT_LIMITS.features} features).`,
        { minimum: -1 },
      ),
      code: choice([...READING_CODES, ...AREA_ERROR_CODES, 'MULTI_GEOMETRY_EXTERNAL_ID']),
      message: text('Of validation codes; codes of reading GeoJSON have none.'),
    },
    { optional: ['message'] },
  ),
} as const satisfies Readonly<Record<string, Schema>>;
