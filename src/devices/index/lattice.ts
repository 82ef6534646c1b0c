import { EQUATORIAL_RADIUS_M } from '../../geo/wgs84.ts';

// The position index keeps earth-centred coordinates as integers. They need half the memory of doubles, and the bits of
// a coordinate are its path through the trie. A step is 6 mm: positions that differ less can share a lattice point.

/** Coordinates run from 0 to 2^31 - 1 on each axis; the equator just fits. */
export const LATTICE_BITS = 31;
/** The earth's centre on each axis. */
export const LATTICE_CENTRE = 2 ** (LATTICE_BITS - 1);
export const STEPS_PER_M = (LATTICE_CENTRE - 1) / EQUATORIAL_RADIUS_M;
/** Depth of the cells that are a single lattice point, when cells halve along x, y and z in turn. */
export const MAX_DEPTH = 3 * LATTICE_BITS;

/** Half the side of a cell along the axis that is halved at this depth; the sides halved before are shorter. */
export const HALVES = Float64Array.from(
  { length: MAX_DEPTH + 3 },
  (_, depth) => LATTICE_CENTRE / 2 ** Math.floor(depth / 3),
);
/** The distance from the centre of a cell at this depth to a corner. */
export const HALF_DIAGONALS = HALVES.map((side, depth) => side * Math.sqrt([3, 2.25, 1.5][depth % 3]!));
