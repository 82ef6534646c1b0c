import { fail, ok, type Result } from '../base/result.ts';
import type { LatLng } from '../geometry/latLng.ts';
import { unwrapRing } from '../geometry/ring.ts';
import { isSelfIntersecting } from '../geometry/selfIntersection.ts';
import { openRing, simplify } from '../geometry/simplify.ts';
import { toVertices } from './area.ts';
import type { DraftPoints } from './areaDraft.ts';
import { AREA_LIMITS as LIMITS } from './areaLimits.ts';
import { FIELD_ERRORS, type FieldError } from './fieldError.ts';

/**
 * The points as an area of that type keeps them, or the first of their faults: too many, too few once nearly
 * coincident ones are dropped, sides that meet. The closing repetition of a polygon counts for nothing.
 */
export function judgePoints(
  type: 'polygon' | 'polyline',
  positions: readonly LatLng[],
): Result<DraftPoints, FieldError> {
  const isPolygon = type === 'polygon';
  const open = isPolygon ? openRing(positions) : positions;
  if (open.length > LIMITS.maxPoints) return fail(FIELD_ERRORS.pointsTooMany);
  const { points, dropped } = simplify(open, isPolygon);
  if (points.length < (isPolygon ? LIMITS.polygonMinPoints : LIMITS.polylineMinPoints)) {
    return fail(FIELD_ERRORS.pointsTooFew);
  }
  if (isPolygon && isSelfIntersecting(unwrapRing(points))) return fail(FIELD_ERRORS.selfIntersection);
  return ok({ points: toVertices(points), judgedAs: type, simplified: dropped });
}
