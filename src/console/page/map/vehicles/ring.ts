const RADIUS_MIN_PX = 36;
/** Between two neighbours on the ring, along it. */
const APART_PX = 26;

/** Places on a ring for `count` vehicles, in pixels east and south of its centre. The first one is in the north. */
export function ringAround(count: number): { readonly x: number; readonly y: number }[] {
  const radius = Math.max(RADIUS_MIN_PX, (count * APART_PX) / (2 * Math.PI));
  return Array.from({ length: count }, (_, n) => {
    const angle = (2 * Math.PI * n) / count;
    return { x: radius * Math.sin(angle), y: -radius * Math.cos(angle) };
  });
}
