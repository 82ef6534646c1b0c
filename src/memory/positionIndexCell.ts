import { HALVES, MAX_DEPTH } from './positionIndexLattice.ts';
import { EMPTY, type PositionIndexTrie } from './positionIndexTrie.ts';

/** A part of the lattice, whatever the trie looks like there: it may be asked for again after the trie has changed. */
export interface Cell {
  readonly depth: number;
  /** Its lower corner. */
  readonly x: number;
  readonly y: number;
  readonly z: number;
  /** Of the crowd at a single lattice point only what stands behind this spot; null: all. */
  readonly afterSpot: string | null;
}

/** The whole Earth. */
export const WHOLE: Cell = { depth: 0, x: 0, y: 0, z: 0, afterSpot: null };

/** How often a cell is halved at once: of the cells of a search that are too large few are then looked at in vain. */
const HALVINGS = 3;

/**
 * Smaller cells that hold all that the cell holds, what is farther from the query first. Of a single lattice point, what
 * stands behind a spot.
 */
export function splitCell(
  trie: PositionIndexTrie,
  cell: Cell,
  query: Float64Array,
  spot: string | null,
): Cell[] {
  if (cell.depth === MAX_DEPTH) return [{ ...cell, afterSpot: spot }];
  let parts: readonly Cell[] = [cell];
  for (let n = 0; n < HALVINGS; n++) parts = parts.flatMap((part) => halvesOf(trie, part, query));
  return [...parts];
}

/** Two cells, the farther first, one that cannot be halved, or none where nothing stands. */
function halvesOf(trie: PositionIndexTrie, cell: Cell, query: Float64Array): Cell[] {
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

function refOf(trie: PositionIndexTrie, { depth, x, y, z }: Cell): number {
  return trie.refAt(depth, x, y, z);
}

/** The other half of the cell that a lower half is of. */
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
