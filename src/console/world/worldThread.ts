import { parentPort } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import type { Tile } from '../../geo/vectorTile.ts';
import { invariant } from '../../lib/errors.ts';
import { type Detail, readNaturalEarth } from './naturalEarth.ts';
import { PLACES_FROM, readCountryNames, readPlaceNames, type WorldName } from './worldNames.ts';
import { shapesIn, type WorldShapes, worldShapes, worldTile } from './worldTile.ts';

/** What the thread answers to a tile: its bytes, compressed by gzip; null where there is only sea. */
export type WorldReply = { readonly tile: Tile } & (
  | { readonly bytes: Uint8Array | null }
  | { readonly error: string }
);

/** Read when a tile first needs it. */
const shapesOf = new Map<Detail, WorldShapes>();
/** Of the largest scale, by the tile of this zoom that is around: 64 at most, together no more than all shapes. */
const partsOf = new Map<string, WorldShapes>();
const PART_ZOOM = 3;
let countries: readonly WorldName[] | null = null;
let places: readonly WorldName[] | null = null;

invariant(parentPort !== null, 'this file is the entry of a thread');
const port = parentPort;
port.on('message', (tile: Tile) => {
  try {
    const bytes = worldTile(shapesAt(tile), namesAt(tile), tile);
    port.postMessage({ tile, bytes: bytes === null ? null : gzipSync(bytes) } satisfies WorldReply);
  } catch (error) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    port.postMessage({ tile, error: text } satisfies WorldReply);
  }
});

/** The points of each scale are about a pixel apart where it is shown. */
function shapesAt({ z, x, y }: Tile): WorldShapes {
  if (z < 6) return shapesWith(z < 2 ? '110m' : '50m');
  const depth = z - PART_ZOOM;
  const part = { z: PART_ZOOM, x: x >> depth, y: y >> depth };
  const name = `${part.x}/${part.y}`;
  const known = partsOf.get(name) ?? shapesIn(shapesWith('10m'), part);
  partsOf.set(name, known);
  return known;
}

function shapesWith(detail: Detail): WorldShapes {
  const known = shapesOf.get(detail) ?? worldShapes(readNaturalEarth(detail));
  shapesOf.set(detail, known);
  return known;
}

function namesAt({ z }: Tile): readonly WorldName[] {
  countries ??= readCountryNames();
  if (z < PLACES_FROM) return countries;
  places ??= readPlaceNames();
  return [...countries, ...places];
}
