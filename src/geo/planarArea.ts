/**
 * Twice the area of a polygon on the flat map, positive if counter-clockwise. The first vertex may or may not be
 * repeated at the end. Coordinates are taken relative to the first vertex, so that small shapes keep their digits.
 */
export function doublePlanarArea(xs: ArrayLike<number>, ys: ArrayLike<number>): number {
  const [x0, y0] = [xs[0] ?? 0, ys[0] ?? 0];
  let area = 0;
  for (let i = 2; i < xs.length; i++) {
    area += (xs[i - 1]! - x0) * (ys[i]! - y0) - (xs[i]! - x0) * (ys[i - 1]! - y0);
  }
  return area;
}
