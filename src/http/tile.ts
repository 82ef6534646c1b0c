import { MAX_ZOOM, type Tile } from '../geo/vectorTile.ts';
import type { Answer } from './answer.ts';
import { errorAnswer } from './answer.ts';
import type { AnswerDescription } from './openapi/operation.ts';
import { integer, text } from './openapi/schema.ts';
import { namesEtag } from './staticFile.ts';

/** The content type that the Mapbox Vector Tile Specification names. */
export const TILE_TYPE = 'application/vnd.mapbox-vector-tile';

/** A 304 costs next to nothing, so a map always asks. */
const TILE_CACHE_CONTROL = 'private, no-cache';

/** The answers of a route that makes tiles. `nothing`: when a tile is a 204. */
export function tileAnswers(nothing: string, contentType = TILE_TYPE): readonly AnswerDescription[] {
  return [
    {
      status: 200,
      description: 'The tile.',
      contentType,
      schema: text(undefined, { format: 'binary' }),
      headers: ['ETag'],
    },
    { status: 204, description: nothing, headers: ['ETag'] },
    { status: 304, description: 'The version named by If-None-Match still stands.', headers: ['ETag'] },
  ];
}

/** A tile, null where nothing is in it; for a caller who knows it already, by `ifNoneMatch`, that it does. */
export function tileAnswer(
  etag: string,
  bytes: Buffer | null,
  ifNoneMatch: string | undefined,
  contentType = TILE_TYPE,
): Answer {
  const headers = { ETag: etag, 'Cache-Control': TILE_CACHE_CONTROL };
  if (namesEtag(ifNoneMatch, etag)) return { status: 304, body: null, headers };
  if (bytes === null) return { status: 204, body: null, headers };
  return { status: 200, body: bytes, headers: { ...headers, 'Content-Type': contentType } };
}

/** The error for a path that names no tile. */
export const TILE_MESSAGE = `a tile is z/x/y in whole numbers: z from 0 to ${MAX_ZOOM}, x and y from 0 to 2^z - 1`;

/** The tile that the parameters z, x and y of a path name; null where there is none. */
export function tileOf(params: Readonly<Record<string, string>>): Tile | null {
  const [z, x, y] = [wholeOf(params['z']), wholeOf(params['x']), wholeOf(params['y'])];
  if (z === null || x === null || y === null) return null;
  return z <= MAX_ZOOM && x < 2 ** z && y < 2 ** z ? { z, x, y } : null;
}

/** A tile has one name only, so that everything in front of this service keeps it once. */
const WHOLE = /^(?:0|[1-9][0-9]{0,7})$/;

function wholeOf(text: string | undefined): number | null {
  return text !== undefined && WHOLE.test(text) ? Number(text) : null;
}

export function malformedTile(): Answer {
  return errorAnswer('BAD_REQUEST', TILE_MESSAGE);
}

export const TILE_PARAMETERS = {
  z: {
    description: 'The zoom: the map is 2^z tiles wide and high.',
    schema: integer(undefined, { minimum: 0, maximum: MAX_ZOOM }),
    example: 0,
  },
  x: {
    description: 'The column of the tile, from 180° west on.',
    schema: integer(undefined, { minimum: 0, maximum: 2 ** MAX_ZOOM - 1 }),
    example: 0,
  },
  y: {
    description: 'The row of the tile, from the north on.',
    schema: integer(undefined, { minimum: 0, maximum: 2 ** MAX_ZOOM - 1 }),
    example: 0,
  },
};
