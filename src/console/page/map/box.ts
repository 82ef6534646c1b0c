/** In degrees; west is larger than east across 180°. */
export interface Box {
  readonly west: number;
  readonly south: number;
  readonly east: number;
  readonly north: number;
}

/**
 * So much of its width and height is followed on each side of a view, that a map which is moved a little needs no other
 * stream.
 */
const MARGIN = 0.5;

const WORLD: Box = { west: -180, south: -90, east: 180, north: 90 };

/** Degrees from west to east. */
function widthOf({ west, east }: Box): number {
  return east >= west ? east - west : east - west + 360;
}

export function isWithin(inner: Box, outer: Box): boolean {
  if (inner.south < outer.south || inner.north > outer.north) return false;
  if (widthOf(outer) >= 360) return true;
  return turned(inner.west - outer.west) + widthOf(inner) <= widthOf(outer);
}

/** With its margin. */
export function widened(box: Box): Box {
  const [width, height] = [MARGIN * widthOf(box), MARGIN * (box.north - box.south)];
  const [south, north] = [Math.max(-90, box.south - height), Math.min(90, box.north + height)];
  if (widthOf(box) + 2 * width >= 360) return { ...WORLD, south, north };
  return { west: wrapped(box.west - width), south, east: -wrapped(-box.east - width), north };
}

/** The box of a map, whose longitudes continue beyond 180. */
export function boxOf({ west, south, east, north }: Box): Box {
  const [low, high] = [Math.max(-90, south), Math.min(90, north)];
  if (east - west >= 360) return { ...WORLD, south: low, north: high };
  return { west: wrapped(west), south: low, east: -wrapped(-east), north: high };
}

/** From 0 to 360. */
function turned(degrees: number): number {
  return degrees - 360 * Math.floor(degrees / 360);
}

/** From -180, but not to 180; an east is the contrary of a west. */
function wrapped(lng: number): number {
  return turned(lng + 180) - 180;
}
