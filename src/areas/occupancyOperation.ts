import { EXAMPLE_VAN } from '../devices/deviceExamples.ts';
import { integer, type Schema, shapeOf } from '../http/openapi/schema.ts';
import { LIST_LIMIT } from '../http/parameters.ts';
import { EXAMPLE_CIRCLE } from './areaExamples.ts';
import type { Used } from './usage.routes.ts';

export const { dwellSeconds } = EXAMPLE_CIRCLE.definition;
const STAY = { areaId: EXAMPLE_CIRCLE.id, device: EXAMPLE_VAN };
const LAST_MS = EXAMPLE_VAN.position.recordedAtMs;
export const ENTERED = { ...STAY, insideSinceMs: LAST_MS - 500_000, confirmedAtMs: LAST_MS - 150_000 };
export const PENDING = { ...STAY, insideSinceMs: LAST_MS - 45_000, confirmedAtMs: null };
export const PAGE_META = { pagination: { limit: LIST_LIMIT.fallback, offset: 0, count: 1 }, total: 1 };

export const EXAMPLE_QUOTA = { areas: 12, vertices: 480, maxAreas: 20_000, maxVertices: 4_000_000 };
export const usedOf = (description: string): Schema => ({
  ...shapeOf<Used>({
    used: integer('How many there are.', { minimum: 0 }),
    limit: integer('How many the plan allows.', { minimum: 0 }),
  }),
  description,
});
