import { HALVES, MAX_DEPTH } from './nearestHits.ts';
import { EMPTY, type Trie } from './trie.ts';

/** A cell of the lattice. It does not depend on the trie, so it stays valid when the trie changes. */
export interface Cell {
  readonly depth: number;
  /** Its lower corner. */
  readonly x: number;
  readonly y: number;
  readonly z: number;
  /** In a cell of one lattice point: only the positions of its overflow bucket after this key; null: all. */
  readonly afterPosition: string | null;
}

/** The whole Earth. */
export const WHOLE_EARTH: Cell = { depth: 0, x: 0, y: 0, z: 0, afterPosition: null };

/** How often a cell is halved at once: more would create needless cells, fewer would search large cells for nothing. */
const HALVINGS = 3;

/**
 * Smaller cells that together contain all devices of the cell, the farthest from the query first. A cell of one lattice
 * point is continued after the position with the key `lastPosition`.
 */
export function splitCell(trie: Trie, cell: Cell, query: Float64Array, lastPosition: string | null): Cell[] {
  if (cell.depth === MAX_DEPTH) return [{ ...cell, afterPosition: lastPosition }];
  let parts: readonly Cell[] = [cell];
  for (let n = 0; n < HALVINGS; n++) parts = parts.flatMap((part) => halvesOf(trie, part, query));
  return [...parts];
}

/** The two halves, the farther first. One cell when it cannot be halved, none when it is empty. */
function halvesOf(trie: Trie, cell: Cell, query: Float64Array): Cell[] {
  for (let at = cell; ; ) {
    if (at.depth === MAX_DEPTH) return [at];
    const lower = { ...at, depth: at.depth + 1 };
    const upper = upperHalf(lower);
    const isLowerEmpty = refOf(trie, lower) === EMPTY;
    const isUpperEmpty = refOf(trie, upper) === EMPTY;
    if (!isLowerEmpty && !isUpperEmpty) {
      const axis = at.depth % 3;
      const middle = axis === 0 ? upper.x : axis === 1 ? upper.y : upper.z;
      return query[axis]! < middle ? [upper, lower] : [lower, upper];
    }
    if (isLowerEmpty && isUpperEmpty) return [];
    at = isLowerEmpty ? upper : lower;
  }
}

function refOf(trie: Trie, { depth, x, y, z }: Cell): number {
  return trie.refAt(depth, x, y, z);
}

/** The upper half of a cell, from its lower half. */
function upperHalf(lower: Cell): Cell {
  const step = HALVES[lower.depth - 1]!;
  switch ((lower.depth - 1) % 3) {
    case 0:
      return { ...lower, x: lower.x + step };
    case 1:
      return { ...lower, y: lower.y + step };
    default:
      return { ...lower, z: lower.z + step };
  }
}
