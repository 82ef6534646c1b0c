import { createHash } from 'node:crypto';
import { scopeMask } from '../../access/scopes.ts';
import type { Tile } from '../../geo/vectorTile.ts';
import type { Answer } from '../../http/answer.ts';
import { answerInTurns, type InTurnsPorts } from '../../http/bulkCalls.ts';
import type { Operation } from '../../http/openapi/operation.ts';
import type { Call, Route } from '../../http/route.ts';
import { namesEtag } from '../../http/staticFile.ts';
import { malformedTile, TILE_MESSAGE, tileAnswer, tileAnswers, tileOf } from '../../http/tile.ts';
import type { Steps } from '../../lib/workTurns.ts';
import type { Fleet } from '../fleet.memory.ts';
import { type DeviceFilter, FILTER_ERRORS, FILTERS, readFilter } from '../living/deviceFilter.ts';
import type { TileMark } from '../living/livingFleet.memory.ts';
import { deviceTile, TILE_DEVICES_MAX } from './deviceTile.ts';
import { KeptTiles } from './keptTiles.memory.ts';

const DEVICE_TILE: Operation = {
  id: 'deviceTile',
  tag: 'Devices',
  summary: 'Draw devices as a vector tile',
  description: `A Mapbox Vector Tile (version 2.1, 4096 units) in Web Mercator with one layer of points. Where at most ${TILE_DEVICES_MAX} devices are in the tile and pass the filters, it is \`devices\`: \`imei\`, \`name\` and \`plate\` (absent where they are null), \`status\`, \`heading\`, \`speed_kmh\` and \`recorded_at\` (whole epoch seconds), in the order of IMEIs. Otherwise it is \`clusters\`: \`count\`, \`moving\`, \`parked\`, \`offline\` and \`unknown\` (0: devices without a position are in no tile) of the devices in each of the 16 by 16 parts of the tile that has some, at the mean of their places. Statuses are those of the last whole second.

Each device is in one tile of a zoom: the sides in the west and north belong to a tile, those in the east and south to its neighbours. So the devices of four tiles are those of the tile above them. 180° is -180°. The map ends at 85.0511° north and south; what is beyond is in the last row of tiles, at its end.

The ETag is made of what the tile shows, so send it as \`If-None-Match\`: maps do. As long as nothing in the tile changes, that is a 304 which costs next to nothing.`,
  parameters: FILTERS,
  answers: tileAnswers('No device is in the tile.'),
  errors: [['BAD_REQUEST', TILE_MESSAGE], ...FILTER_ERRORS, 'TOO_COMPLEX'],
};

interface DeviceTilePorts extends InTurnsPorts {
  readonly fleet: Fleet;
}

/** The devices of a caller as vector tiles. Answered from memory. */
export function deviceTilesRoute(ports: DeviceTilePorts): Route {
  const kept = new KeptTiles();
  return {
    method: 'GET',
    path: '/tiles/devices/:z/:x/:y.mvt',
    scopes: scopeMask('read_devices', 'read_locations'),
    isOpenToGroups: true,
    needsAllScopes: true,
    versions: ['v3'],
    shedAs: 'bulk',
    describe: DEVICE_TILE,
    isFromMemory: true,
    handle: (call) => answered(ports, kept, call),
  };
}

function answered(ports: DeviceTilePorts, kept: KeptTiles, call: Call): Answer | Promise<Answer> {
  const tile = tileOf(call.params);
  if (tile === null) return malformedTile();
  const filter = readFilter(call.query, call.caller.worldIds);
  if (!filter.ok) return filter.error;
  const asked = { tile, filter: filter.value, name: nameOf(call, tile, filter.value) };
  const mark = ports.fleet.living.tileMarkAtOnce(call.caller.worldIds, tile, call.nowMs);
  const known = mark === null ? null : knownAnswer(kept, call, asked, mark);
  return known ?? answerInTurns(ports, call.caller.accountId, made(ports.fleet, kept, call, asked));
}

interface AskedTile {
  readonly tile: Tile;
  readonly filter: DeviceFilter | null;
  /** Unique for the account. */
  readonly name: string;
}

function nameOf({ caller }: Call, { z, x, y }: Tile, filter: DeviceFilter | null): string {
  return `${caller.worldIds} ${z}/${x}/${y} ${filter?.key ?? ''}`;
}

/** A 304 where the caller knows what the tile still shows; else null. */
function knownAnswer(
  kept: KeptTiles,
  { caller, header }: Call,
  { name }: AskedTile,
  mark: TileMark,
): Answer | null {
  const sent = header('if-none-match');
  if (sent === undefined) return null;
  const known = kept.etag(caller.accountId, name, mark);
  return known !== null && namesEtag(sent, known) ? tileAnswer(known, null, sent) : null;
}

function* made({ living }: Fleet, kept: KeptTiles, call: Call, asked: AskedTile): Steps<Answer> {
  const { accountId, worldIds } = call.caller;
  const { tile, filter, name } = asked;
  const mark = yield* living.tileMark(worldIds, tile, call.nowMs);
  const known = knownAnswer(kept, call, asked, mark);
  if (known !== null) return known;
  const { content, untilMs } = yield* living.tile(worldIds, tile, filter, mark);
  const bytes = yield* deviceTile(content, tile);
  const etag = etagOf(bytes);
  kept.put(accountId, name, { stamps: mark.stamps, untilMs, etag });
  return tileAnswer(etag, bytes, call.header('if-none-match'));
}

/** Weak: a proxy may compress the tile. */
function etagOf(bytes: Buffer | null): string {
  if (bytes === null) return 'W/"nothing"';
  return `W/"${createHash('sha256').update(bytes).digest('base64url').slice(0, ETAG_CHARS)}"`;
}

/** Of six bits each. */
const ETAG_CHARS = 22;
