/**
 * Twice the area of a polygon on the flat map, positive counter-clockwise; whether the first vertex is repeated at the
 * end does not matter. Counted from the first vertex, so that small shapes keep their digits.
 */
export function doublePlanarArea(xs: ArrayLike<number>, ys: ArrayLike<number>): number {
  const [x0, y0] = [xs[0] ?? 0, ys[0] ?? 0];
  let area = 0;
  for (let i = 2; i < xs.length; i++) {
    area += (xs[i - 1]! - x0) * (ys[i]! - y0) - (xs[i]! - x0) * (ys[i - 1]! - y0);
  }
  return area;
}
