import { EXAMPLE_POINT } from '../devices/deviceExamples.ts';
import { ID_MESSAGE } from '../http/id.ts';
import type { DescribedError } from '../http/openapi/operation.ts';
import { integer } from '../http/openapi/schema.ts';
import { LIST_LIMIT } from '../http/parameters.ts';
import { EXAMPLE_CIRCLE, EXAMPLE_PLACE, EXAMPLE_POLYGON, EXAMPLE_TRACK } from './areaExamples.ts';
import { areaView } from './areaViews.ts';
import { compileShape } from './shape.ts';

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
