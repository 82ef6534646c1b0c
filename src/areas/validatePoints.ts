import type { LatLng } from '../geo/latLng.ts';
import { unwrapRing } from '../geo/ring.ts';
import { isSelfIntersecting } from '../geo/selfIntersection.ts';
import { openRing, simplify } from '../geo/simplify.ts';
import type { FieldError } from '../lib/fieldError.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import { toVertices } from './area.ts';
import type { DraftPoints } from './areaDraft.ts';
import { AREA_ERRORS } from './areaErrors.ts';
import { AREA_LIMITS as LIMITS } from './areaLimits.ts';

/**
 * The points as an area of that type stores them, or the first error: too many, too few once nearly coincident ones are
 * dropped, or edges that meet. The repeated last point of a polygon does not count.
 */
export function validatePoints(
  type: 'polygon' | 'polyline',
  positions: readonly LatLng[],
): Result<DraftPoints, FieldError> {
  const isPolygon = type === 'polygon';
  const open = isPolygon ? openRing(positions) : positions;
  if (open.length > LIMITS.maxPoints) return fail(AREA_ERRORS.pointsTooMany);
  const { points, dropped } = simplify(open, isPolygon);
  if (points.length < (isPolygon ? LIMITS.polygonMinPoints : LIMITS.polylineMinPoints)) {
    return fail(AREA_ERRORS.pointsTooFew);
  }
  if (isPolygon && isSelfIntersecting(unwrapRing(points))) return fail(AREA_ERRORS.selfIntersection);
  return ok({ points: toVertices(points), validatedAs: type, simplified: dropped });
}
