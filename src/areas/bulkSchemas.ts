import { DEVICE_NAMES } from '../devices/deviceViews.ts';
import { NEAREST_LIMIT } from '../devices/nearest.routes.ts';
import { BATCH_LIMITS } from '../http/bulk/batchPoints.ts';
import { CONTAINING_MAX } from '../http/bulk/bulkLimits.ts';
import type { ErrorCode } from '../http/errors.ts';
import { ID } from '../http/openapi/commonSchemas.ts';
import {
  choice,
  integer,
  list,
  nullable,
  number,
  ref,
  type Schema,
  shapeOf,
  text,
  time,
} from '../http/openapi/schema.ts';
import type { occupantView } from './areaDevices.routes.ts';
import type { areaView } from './areaExamples.ts';
import { AREA_FACTS } from './areaSchemas.ts';
import type { overlapView } from './overlap/areaOverlaps.routes.ts';

const REF_SENT: Schema = {
  oneOf: [text(undefined, { maxLength: BATCH_LIMITS.refMaxChars }), number()],
  description: 'Your own name of the point; its item repeats it.',
};
const REF: Schema = { oneOf: [nullable(text()), number()], description: 'As it was sent; null without one.' };

/** Coordinates have no bounds here: a point that is out of range is an error of its own item. */
const POINT = { ref: REF_SENT, lat: number('Degrees north.'), lng: number('Degrees east.') };

function pointsOf(point: Schema): Schema {
  return shapeOf<{ points: unknown }>({
    points: list(point, { minItems: 1, maxItems: BATCH_LIMITS.points }),
  });
}

function itemOf(result: string, schema: Schema, codes: readonly ErrorCode[]): Schema {
  const error = shapeOf<{ code: string; message: string }>({ code: choice(codes), message: text() });
  return {
    ...shapeOf<Record<string, unknown>>(
      { ref: REF, [result]: schema, error },
      { optional: [result, 'error'] },
    ),
    description: `Has \`${result}\`, or \`error\` when this point cannot be answered.`,
  };
}

const DISTANCE_M = number('Metres to the boundary: negative inside, 0 on it.', { maximum: 0 });

type AreaNames = Pick<ReturnType<typeof areaView>, 'id' | 'name' | 'type' | 'external_id'>;
const { name, type, external_id } = AREA_FACTS;

export const BULK_SCHEMAS = {
  NearestBatchInput: pointsOf(
    shapeOf<{ ref: unknown; lat: number; lng: number; limit: number; max_km: number | null }>(
      {
        ...POINT,
        limit: integer(`As in the single route: ${NEAREST_LIMIT.min} to ${NEAREST_LIMIT.max}, 1 without it.`),
        max_km: nullable(number('Only devices within so many kilometres.', { minimum: 0 })),
      },
      { optional: ['ref', 'limit', 'max_km'] },
    ),
  ),
  NearestBatchItem: itemOf('devices', list(ref('NearDevice')), [
    'COORDINATES_REQUIRED',
    'INVALID_COORDINATES',
    'BAD_REQUEST',
  ]),
  ContainingBatchInput: pointsOf(
    shapeOf<{ ref: unknown; lat: number; lng: number }>(POINT, { optional: ['ref'] }),
  ),
  ContainingBatchItem: itemOf(
    'areas',
    list(
      shapeOf<{ id: number; external_id: string | null; distance_m: number }>({
        id: ID,
        external_id,
        distance_m: DISTANCE_M,
      }),
      {
        description: `Deepest inside first. Where there are more than ${CONTAINING_MAX}, \`total\` counts them.`,
      },
    ),
    ['BAD_REQUEST'],
  ),
  ContainingArea: shapeOf<{ area: unknown; distance_m: number }>({
    area: shapeOf<AreaNames>({ id: ID, name, type, external_id }),
    distance_m: DISTANCE_M,
  }),
  AreaDevice: shapeOf<ReturnType<typeof occupantView>>({
    device: shapeOf<ReturnType<typeof occupantView>['device']>(DEVICE_NAMES),
    since: time('The GPS time of the first point inside.'),
    entered_at: nullable(time('The GPS time of the point that made the entry; null while it is pending.')),
    dwell_left_seconds: number(
      'GPS time from the newest point until the entry is made, if the device stays; 0 once it is.',
      { minimum: 0 },
    ),
    last_point_at: time('The GPS time of the newest point of the device.'),
  }),
  AreaOverlap: shapeOf<ReturnType<typeof overlapView>>({
    area: shapeOf<AreaNames>({ id: ID, name, type, external_id }),
    overlap_m2: number('Square metres that both have in common.', { minimum: 0 }),
    share: number('Of the area that was asked about.', { minimum: 0, maximum: 1 }),
    share_of_other: number('Of the other area.', { minimum: 0, maximum: 1 }),
  }),
  BatchFieldError: shapeOf<{ field: string | null; code: string; message: string }>(
    {
      field: nullable(choice(['points'], 'null: the body as a whole.')),
      code: choice(['REQUIRED', 'INVALID', 'LIMIT_REACHED', 'INVALID_BODY']),
      message: text(),
    },
    { description: 'What is wrong with a batch as a whole.' },
  ),
};
