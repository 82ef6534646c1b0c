/** The height of a line of text on the map. */
export const LINE_PX = 16;
const RADIUS_MIN_PX = 36;
/** Between two neighbours on the ring, along it. */
const APART_PX = 26;

/** A name at a place of the view, in pixels: where it begins, its middle, and its width. */
export interface Label {
  readonly imei: string;
  readonly x: number;
  readonly y: number;
  readonly width: number;
}

/** Those that do not cover each other, at most `max`; the first ones come before the others. */
export function withoutOverlaps<Each extends Label>(labels: readonly Each[], max: number): Each[] {
  const placed: Each[] = [];
  /** By rows of the height of a line: a label can meet those of its own and of both rows beside it. */
  const rows = new Map<number, Each[]>();
  for (const label of labels) {
    if (placed.length === max) break;
    const row = Math.floor(label.y / LINE_PX);
    const isFree = [row - 1, row, row + 1].every((near) =>
      (rows.get(near) ?? []).every(
        ({ x, y, width }) =>
          Math.abs(y - label.y) >= LINE_PX || x >= label.x + label.width || x + width <= label.x,
      ),
    );
    if (!isFree) continue;
    placed.push(label);
    rows.set(row, [...(rows.get(row) ?? []), label]);
  }
  return placed;
}

/** Places on a ring for `count` vehicles, in pixels east and south of its centre. The first one is in the north. */
export function ringAround(count: number): { readonly x: number; readonly y: number }[] {
  const radius = Math.max(RADIUS_MIN_PX, (count * APART_PX) / (2 * Math.PI));
  return Array.from({ length: count }, (_, n) => {
    const angle = (2 * Math.PI * n) / count;
    return { x: radius * Math.sin(angle), y: -radius * Math.cos(angle) };
  });
}
