import { ID } from '../../http/openapi/commonSchemas.ts';
import { choice, integer, list, ref, type Schema, shapeOf, text } from '../../http/openapi/schema.ts';
import { AREA_ERROR_CODES } from '../areaSchemas.ts';
import type { ImportReport } from './importAreas.ts';
import type { ImportError } from './importError.ts';
import { READING_CODES } from './importError.ts';
import { IMPORT_LIMITS } from './importPlan.ts';
import { IMPORT_WARNINGS, type ImportWarning } from './resolveImport.ts';

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
