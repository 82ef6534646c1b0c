import type { FieldError } from '../lib/fieldError.ts';
import type { AreaDefinition } from './area.ts';
import { AREA_ERRORS } from './draft/areaErrors.ts';

/** What an account has and may have, counted over the areas that it made, shared ones too. */
export interface AreaQuota extends AreaSize {
  readonly maxAreas: number;
  readonly maxVertices: number;
}

export interface AreaSize {
  readonly areas: number;
  /** Vertices of polygons and tracks; circles and places have none. */
  readonly vertices: number;
}

/** What a new area takes (`before` is null), or what changing one takes. */
export function growthOf(before: AreaDefinition | null, after: AreaDefinition): AreaSize {
  const vertices = verticesOf(after) - (before === null ? 0 : verticesOf(before));
  return { areas: before === null ? 1 : 0, vertices };
}

/**
 * Why a growth does not fit; null when it does. A change that needs no more always fits, also where the plan now allows
 * less than there is.
 */
export function quotaErrorOf(quota: AreaQuota, growth: AreaSize): FieldError | null {
  if (growth.areas > 0 && quota.areas + growth.areas > quota.maxAreas) return AREA_ERRORS.tooManyAreas;
  if (growth.vertices > 0 && quota.vertices + growth.vertices > quota.maxVertices)
    return AREA_ERRORS.tooManyVertices;
  return null;
}

/** The quota after a growth. */
export function grown(quota: AreaQuota, growth: AreaSize): AreaQuota {
  return { ...quota, areas: quota.areas + growth.areas, vertices: quota.vertices + growth.vertices };
}

function verticesOf({ geometry }: AreaDefinition): number {
  return 'points' in geometry ? geometry.points.length / 2 : 0;
}
