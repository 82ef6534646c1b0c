import { type Bounds, corridorBounds, extentOf } from './measure.ts';
import type { Path } from './path.ts';

/**
 * Bounds that together hold all positions within bufferM of a path's edges, as `corridorBounds` does alone. A long path
 * that slants over the map, or runs to and fro on such a line, fills a small part of its one bounding box. So the box is
 * halved along its longer side, and each half is narrowed to the edges inside it, as long as that leaves much out.
 * Ordinary areas stay whole. At most MOST_PARTS.
 */
export function corridorParts(path: Path, bufferM: number): Bounds[] {
  const whole = corridorBounds(path, bufferM);
  const width = whole.east - whole.west;
  if ((width < 0 ? width + 360 : width) * (whole.north - whole.south) < LEAST_SIZE) return [whole];
  const done: Part[] = [];
  const allEdges = Int32Array.from({ length: path.lngs.length - 1 }, (_, edge) => edge);
  const open: Part[] = [{ ...extentOf(path), edges: allEdges }];
  while (open.length > 0 && done.length + open.length < MOST_PARTS) {
    const part = takeLargest(open);
    const halves = halvesOf(path, part);
    if (halves.length === 0) done.push(part);
    else open.push(...halves);
  }
  const parts = [...done, ...open];
  return parts.length === 1 ? [whole] : parts.map((part) => boundsOf(part, bufferM));
}

/** A part of the path: its box, with longitudes as the path has them, and the edges that run through it. */
interface Part extends Bounds {
  readonly edges: Int32Array;
}

/** No halves if they would leave out too little. */
function halvesOf(path: Path, part: Part): Part[] {
  const { west, south, east, north } = part;
  const isWide = east - west > north - south;
  const lng = (west + east) / 2;
  const lat = (south + north) / 2;
  const halves = [
    partOf(path, part.edges, isWide ? { ...part, east: lng } : { ...part, north: lat }),
    partOf(path, part.edges, isWide ? { ...part, west: lng } : { ...part, south: lat }),
  ].filter((half) => half !== null);
  const size = halves.reduce((sum, half) => sum + sizeOf(half), 0);
  return size <= WORTH_HALVING * sizeOf(part) ? halves : [];
}

/** The part of these edges that is inside a box; null when none is. */
function partOf({ lngs, lats }: Path, edges: Int32Array, box: Bounds): Part | null {
  const found = new Int32Array(edges.length);
  let count = 0;
  let west = Infinity;
  let south = Infinity;
  let east = -Infinity;
  let north = -Infinity;
  for (let n = 0; n < edges.length; n++) {
    const edge = edges[n]!;
    const lng = lngs[edge]!;
    const lat = lats[edge]!;
    const dLng = lngs[edge + 1]! - lng;
    const dLat = lats[edge + 1]! - lat;
    // The fractions of the edge between which it is in the box.
    let from = 0;
    let to = 1;
    if (dLng !== 0) {
      const a = (box.west - lng) / dLng;
      const b = (box.east - lng) / dLng;
      from = Math.max(from, Math.min(a, b));
      to = Math.min(to, Math.max(a, b));
    } else if (lng < box.west || lng > box.east) continue;
    if (dLat !== 0) {
      const a = (box.south - lat) / dLat;
      const b = (box.north - lat) / dLat;
      from = Math.max(from, Math.min(a, b));
      to = Math.min(to, Math.max(a, b));
    } else if (lat < box.south || lat > box.north) continue;
    if (from > to) continue;
    found[count++] = edge;
    const lngA = lng + from * dLng;
    const lngB = lng + to * dLng;
    const latA = lat + from * dLat;
    const latB = lat + to * dLat;
    west = Math.min(west, Math.min(lngA, lngB));
    east = Math.max(east, Math.max(lngA, lngB));
    south = Math.min(south, Math.min(latA, latB));
    north = Math.max(north, Math.max(latA, latB));
  }
  return count === 0 ? null : { west, south, east, north, edges: found.subarray(0, count) };
}

function takeLargest(parts: Part[]): Part {
  let largest = 0;
  for (let n = 1; n < parts.length; n++) if (sizeOf(parts[n]!) > sizeOf(parts[largest]!)) largest = n;
  return parts.splice(largest, 1)[0]!;
}

/** On the map of longitude and latitude; a line along a meridian has a width too. */
function sizeOf({ west, south, east, north }: Bounds): number {
  return (east - west + THIN_DEGREES) * (north - south + THIN_DEGREES);
}

/** The corners are enough: a buffer is widest where the box is nearest to a pole. */
function boundsOf({ west, south, east, north }: Part, bufferM: number): Bounds {
  const turn = 360 * Math.floor((west + 180) / 360);
  const lngs = [west - turn, east - turn, west - turn, east - turn];
  return corridorBounds({ lngs, lats: [south, south, north, north], points: [] }, bufferM);
}

/** Each part takes some 200 bytes of the index of areas. */
const MOST_PARTS = 8;
/** In square degrees: about fifty kilometres in each direction. */
const LEAST_SIZE = 0.25;
/** A box that shrinks by less than this is not halved. */
const WORTH_HALVING = 0.8;
const THIN_DEGREES = 0.01;
