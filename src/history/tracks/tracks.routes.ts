import { scopeMask } from '../../access/scopes.ts';
import type { Fleet } from '../../devices/fleet.memory.ts';
import type { Answer } from '../../http/answer.ts';
import type { BulkCalls } from '../../http/bulkCalls.ts';
import type { Operation } from '../../http/openapi/operation.ts';
import type { Call, Route } from '../../http/route.ts';
import { malformedTile, TILE_MESSAGE, TILE_TYPE, tileAnswer, tileAnswers, tileOf } from '../../http/tile.ts';
import type { WorkTurns } from '../../lib/workTurns.ts';
import type { Sql } from '../../postgres/sql.ts';
import { RecentTracks } from './recentTracks.ts';
import { LEVELS_FROM, PICTURE_SIDE } from './trackTile.ts';
import { type TrackFormat, TrackTiles } from './trackTiles.ts';

const TYPES: Readonly<Record<TrackFormat, string>> = { mvt: TILE_TYPE, png: 'image/png' };

const [, SECOND, THIRD, FOURTH] = LEVELS_FROM;
const WHAT = `Where the devices of the key have driven, as a grid of 2^21 cells around the earth (13 m at 45°): from packed history, as far back as the plan of the account retains whole weeks (Monday to Sunday, UTC), and from the points of the last two or three days. Level 1 is a cell in which one or two days of devices were counted, level 2 from ${SECOND} on, 3 from ${THIRD} and 4 from ${FOURTH}. At a zoom below 13 a cell is four times as large for each, and has the most of what is in it. Ways of parked vehicles, gaps of more than 10 minutes, and jumps of more than 2 km or 250 km/h are not drawn. No device and no time can be told from it; what a device has drawn stays in its world when the device is deleted or moved, until its week is forgotten.`;
const KEEPING =
  'The ETag changes when the tile does, so send it as `If-None-Match`: maps do. What was driven in the last days is read again at most once a minute. An account has two tiles made at a time on a pod; further ones wait.';

function operationOf(format: TrackFormat, summary: string, description: string): Operation {
  return {
    id: format === 'mvt' ? 'trackTile' : 'trackPicture',
    tag: 'Devices',
    summary,
    description: `${WHAT}\n\n${description}\n\n${KEEPING}`,
    answers: tileAnswers('Nobody has driven there.', TYPES[format]),
    errors: [['BAD_REQUEST', TILE_MESSAGE]],
  };
}

const OPERATIONS: Readonly<Record<TrackFormat, Operation>> = {
  mvt: operationOf(
    'mvt',
    'Draw where the fleet has driven as a vector tile',
    'A Mapbox Vector Tile (version 2.1, 4096 units) with one layer, `tracks`: lines from the middle of each cell to those of its neighbours, with the lower `level` (1 to 4) of the two. Features have up to 500 lines, the lowest level first. A cell without neighbours is a line half as long as a cell.',
  ),
  png: operationOf(
    'png',
    'Draw where the fleet has driven as a picture',
    `A PNG of ${PICTURE_SIDE} pixels a side, grey with alpha: the higher the level, the more opaque. Up to zoom 13 a pixel is a cell.`,
  ),
};

interface TrackPorts {
  readonly fleet: Fleet;
  readonly reads: (accountId: number) => Sql;
  /** By account. */
  readonly turns: WorkTurns<string | number>;
  readonly bulkCalls: BulkCalls;
}

/** Where the vehicles of a caller have driven, as tiles: vectors and pictures. */
export function trackTileRoutes(ports: TrackPorts): Route[] {
  const tiles = new TrackTiles({ ...ports, recent: new RecentTracks(ports) });
  return (['mvt', 'png'] as const).map((format) => ({
    method: 'GET',
    path: `/tiles/tracks/:z/:x/:y.${format}`,
    scopes: scopeMask('read_history'),
    versions: ['v3'],
    shedAs: 'bulk',
    describe: OPERATIONS[format],
    handle: (call) => answered(tiles, format, call),
  }));
}

async function answered(
  tiles: TrackTiles,
  format: TrackFormat,
  { caller, params, nowMs, header }: Call,
): Promise<Answer> {
  const tile = tileOf(params);
  if (tile === null) return malformedTile();
  const { bytes, etag } = await tiles.tile(caller, tile, format, nowMs);
  return tileAnswer(etag, bytes, header('if-none-match'), TYPES[format]);
}
