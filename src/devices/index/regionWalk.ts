import { EQUATORIAL_RADIUS_M, POLAR_RADIUS_M, RADIANS_PER_DEGREE } from '../../geo/wgs84.ts';
import { Pace, type Steps } from '../../lib/workTurns.ts';
import { type Cell, refAt } from './search.ts';
import {
  BLOCK_SHIFT,
  DEPTH,
  EMPTY,
  ENTRY_INTS,
  HALF_DIAGONALS,
  HALVES,
  LATTICE_BITS,
  LATTICE_CENTRE,
  MAX_DEPTH,
  OVERFLOWED,
  ROOT,
  SLOT,
  type SlotPositions,
  STEPS_PER_M,
  type Trie,
} from './trie.ts';

/** A part of the Earth, its boundary included. */
export interface Region {
  contains(lat: number, lng: number): boolean;
  /**
   * `in`: every position within `radiusM` is inside. `out`: none is. `cut`: not known; allowed whenever finding out would take
   * long.
   */
  sideOf(lat: number, lng: number, radiusM: number): Side;
  /**
   * The same of the positions in a cuboid, by its centre and half of its sides, in earth-centred metres: for regions where
   * that is found out with a few multiplications. Then positions need not be read whose rounded ones are not near the
   * boundary.
   */
  sideOfCuboid?(x: number, y: number, z: number, halfX: number, halfY: number, halfZ: number): Side;
}

export type Side = 'in' | 'out' | 'cut';

/**
 * Visits the slots whose positions are in a region, in steps, between which the trie may change. A slot that does not
 * change is visited once, if it is in the region; one that changes between steps may be visited at both places or at none.
 * Cells that are wholly inside are taken without a look at their positions.
 */
export function* walkRegion(
  trie: Trie,
  slots: SlotPositions,
  region: Region,
  visit: (slot: number) => void,
): Steps<void> {
  const pace = new Pace();
  // By what is still to be visited: depth, lower corner, whether it is wholly inside, and the reference of the cell.
  const stack = new Float64Array(STACK_FIELDS * (MAX_DEPTH + 2));
  const cell: WalkCell = { depth: 0, x: 0, y: 0, z: 0, afterPosition: null };
  stack[REF] = trie.children[ROOT]!;
  let top = STACK_FIELDS;
  while (top > 0) {
    top -= STACK_FIELDS;
    cell.depth = stack[top]!;
    cell.x = stack[top + 1]!;
    cell.y = stack[top + 2]!;
    cell.z = stack[top + 3]!;
    const ref = stack[top + REF]!;
    if (ref === EMPTY) continue;
    const side = stack[top + INSIDE] === 1 ? 'in' : sideOfCell(region, cell);
    if (side === 'out') continue;
    const isInside = side === 'in';
    if (ref > 0) {
      pushHalf(stack, top, cell, isInside, 1, trie.children[2 * ref + 1]!);
      pushHalf(stack, top + STACK_FIELDS, cell, isInside, 0, trie.children[2 * ref]!);
      top += 2 * STACK_FIELDS;
      continue;
    }
    let hasPaused = false;
    if (trie.pool[~ref << BLOCK_SHIFT] === OVERFLOWED) {
      hasPaused = yield* walkBucket(trie, ref, isInside ? null : region, visit, pace);
    } else {
      scanLeaf(trie, slots, ref, cell, isInside ? null : region, visit);
    }
    if (pace.isDue()) {
      yield* pace.pause();
      hasPaused = true;
    }
    if (hasPaused) findAgain(trie, stack, top, cell);
  }
}

/** A cell whose fields are overwritten with those of the next one. */
type WalkCell = { -readonly [Field in keyof Cell]: Cell[Field] };

const STACK_FIELDS = 6;
const INSIDE = 4;
const REF = 5;

function pushHalf(
  stack: Float64Array,
  at: number,
  { depth, x, y, z }: WalkCell,
  isInside: boolean,
  half: 0 | 1,
  ref: number,
): void {
  const step = half * HALVES[depth]!;
  const axis = depth % 3;
  stack[at] = depth + 1;
  stack[at + 1] = axis === 0 ? x + step : x;
  stack[at + 2] = axis === 1 ? y + step : y;
  stack[at + 3] = axis === 2 ? z + step : z;
  stack[at + INSIDE] = isInside ? 1 : 0;
  stack[at + REF] = ref;
}

/** After a pause cells have other references: the trie may have changed. */
function findAgain(trie: Trie, stack: Float64Array, top: number, cell: WalkCell): void {
  for (let at = 0; at < top; at += STACK_FIELDS) {
    cell.depth = stack[at]!;
    cell.x = stack[at + 1]!;
    cell.y = stack[at + 2]!;
    cell.z = stack[at + 3]!;
    stack[at + REF] = refAt(trie, cell);
  }
}

/** From this depth on half a diagonal is at most a sixth of the Earth's radius: see CellBound of a far search. */
const MEASURED_DEPTH = 11;
const POLAR_RATIO = POLAR_RADIUS_M / EQUATORIAL_RADIUS_M;

function sideOfCell(region: Region, { depth, x, y, z }: WalkCell): Side {
  const turn = depth % 3;
  const halfX = HALVES[depth + (turn === 0 ? 0 : turn === 1 ? 2 : 1)]!;
  const halfY = HALVES[depth + (turn === 0 ? 1 : turn === 1 ? 0 : 2)]!;
  const halfZ = HALVES[depth + (turn === 0 ? 2 : turn === 1 ? 1 : 0)]!;
  const cx = x + halfX - LATTICE_CENTRE;
  const cy = y + halfY - LATTICE_CENTRE;
  const cz = z + halfZ - LATTICE_CENTRE;
  if (region.sideOfCuboid !== undefined)
    return region.sideOfCuboid(
      METRES * cx,
      METRES * cy,
      METRES * cz,
      METRES * halfX + LATTICE_MARGIN_M,
      METRES * halfY + LATTICE_MARGIN_M,
      METRES * halfZ + LATTICE_MARGIN_M,
    );
  // Of larger cells nothing is known. No position of a measured one is farther from the projection of its centre than this.
  if (depth < MEASURED_DEPTH) return 'cut';
  const lat = Math.atan2(cz / POLAR_RATIO, Math.sqrt(cx * cx + cy * cy) * POLAR_RATIO) / RADIANS_PER_DEGREE;
  const lng = Math.atan2(cy, cx) / RADIANS_PER_DEGREE;
  const radiusM = (1.01 * HALF_DIAGONALS[depth]!) / (POLAR_RATIO * STEPS_PER_M) + LATTICE_MARGIN_M;
  return region.sideOf(lat, lng, radiusM);
}

const METRES = 1 / STEPS_PER_M;
/** More than positions are moved by rounding to the lattice. */
const LATTICE_MARGIN_M = 0.05;

/** `region`: null where all positions of the cell are inside. */
function scanLeaf(
  { pool }: Trie,
  slots: SlotPositions,
  leaf: number,
  cell: WalkCell,
  region: Region | null,
  visit: (slot: number) => void,
): void {
  const base = ~leaf << BLOCK_SHIFT;
  // Leaves may have become one since the cell was put on the stack: then the others have their own cells there.
  const isLarger = pool[base + DEPTH]! < cell.depth;
  const last = base + ENTRY_INTS * pool[base]!;
  for (let entry = base + ENTRY_INTS; entry <= last; entry += ENTRY_INTS) {
    if (isLarger && !isInCell(cell, pool[entry]!, pool[entry + 1]!, pool[entry + 2]!)) continue;
    const slot = pool[entry + SLOT]!;
    if (region !== null) {
      const side = sideOfPoint(region, pool[entry]!, pool[entry + 1]!, pool[entry + 2]!);
      if (side === 'out') continue;
      if (side === 'cut' && !region.contains(slots.lat(slot), slots.lng(slot))) continue;
    }
    visit(slot);
  }
}

/** Of a position by its lattice point, which is in the same line of the processor's cache as its slot. */
function sideOfPoint(region: Region, x: number, y: number, z: number): Side {
  if (region.sideOfCuboid === undefined) return 'cut';
  return region.sideOfCuboid(
    METRES * (x - LATTICE_CENTRE),
    METRES * (y - LATTICE_CENTRE),
    METRES * (z - LATTICE_CENTRE),
    LATTICE_MARGIN_M,
    LATTICE_MARGIN_M,
    LATTICE_MARGIN_M,
  );
}

/** Whether the leading bits of each axis that lead to the cell are those of the point. */
function isInCell(cell: WalkCell, x: number, y: number, z: number): boolean {
  const { depth } = cell;
  return (
    (x ^ cell.x) >>> (LATTICE_BITS - (((depth + 2) / 3) | 0)) === 0 &&
    (y ^ cell.y) >>> (LATTICE_BITS - (((depth + 1) / 3) | 0)) === 0 &&
    (z ^ cell.z) >>> (LATTICE_BITS - ((depth / 3) | 0)) === 0
  );
}

const POSITIONS_AT_ONCE = 16;
const SLOTS_BETWEEN_LOOKS = 512;

/**
 * There may be a million devices on one spot. Their list is copied, since it may change between steps. True when there
 * was a pause.
 */
function* walkBucket(
  trie: Trie,
  leaf: number,
  region: Region | null,
  visit: (slot: number) => void,
  pace: Pace,
): Steps<boolean> {
  let hasPaused = false;
  const bucket = trie.bucketOf(~leaf);
  for (let after: string | null = null; ; ) {
    const positions = bucket.positionsAfter(after, POSITIONS_AT_ONCE);
    for (const { key, lat, lng, slots } of positions) {
      after = key;
      if (region !== null && !region.contains(lat, lng)) continue;
      const copied = slots.slice(0, slots.size);
      for (let n = 0; n < copied.length; n++) {
        visit(copied[n]!);
        const isLook = n === copied.length - 1 || (n + 1) % SLOTS_BETWEEN_LOOKS === 0;
        if (!isLook || !pace.isDue()) continue;
        yield* pace.pause();
        hasPaused = true;
      }
    }
    if (positions.length < POSITIONS_AT_ONCE) return hasPaused;
  }
}
