import { scopeMask } from '../../access/scopes.ts';
import { type Tile, tileBox } from '../../geo/vectorTile.ts';
import { type Answer, errorAnswer, NotBegun } from '../../http/answer.ts';
import type { BulkCalls } from '../../http/bulkCalls.ts';
import type { Operation } from '../../http/openapi/operation.ts';
import type { Call, Route } from '../../http/route.ts';
import { malformedTile, TILE_MESSAGE, TILE_TYPE, tileAnswer, tileAnswers, tileOf } from '../../http/tile.ts';
import type { AtOnce, Steps } from '../../lib/workTurns.ts';
import type { Area, AreaCatalog } from '../areaCatalog.memory.ts';
import type { RevisionDigest } from '../boxSearch.memory.ts';
import { AREA_TILE_LIMITS, areaTile } from './areaTile.ts';

/** Part of every ETag: a release that draws areas in another way raises it. */
const DRAWING = 1;
const TOO_COMPLEX =
  'the areas take longer to draw than a call may; simplify them, or ask for tiles of a higher zoom';

const AREA_TILE: Operation = {
  id: 'areaTile',
  tag: 'Areas',
  summary: 'Draw areas as a vector tile',
  description: `A Mapbox Vector Tile (version 2.1, 4096 units) in Web Mercator with one layer, \`areas\`: \`id\`, \`name\`, \`type\`, \`color\` and \`external_id\` (absent where it is null) of each area that has a point in the tile, as polygons with their radius or buffer, 64 units beyond the tile. A boundary is off by three units at most. What is thinner than a unit, and a track narrower than eight, is a line; what is smaller than a unit is a square of one. A tile has at most ${AREA_TILE_LIMITS.areas} areas, largest first, and about ${AREA_TILE_LIMITS.points} vertices: the smallest are left out. The map ends at 85.0511° north and south.

The ETag changes when an area in the tile or with its bounds in the tile is written, and at no other write, so send it as \`If-None-Match\`: maps do. An account has two tiles made at a time on a pod; further ones wait up to 15 seconds, then they are a 503.`,
  answers: tileAnswers('No area has a point in the tile.'),
  errors: [
    ['BAD_REQUEST', TILE_MESSAGE],
    ['TOO_COMPLEX', TOO_COMPLEX],
  ],
};

interface AreaTilePorts {
  readonly areas: AreaCatalog;
  readonly bulkCalls: BulkCalls;
  /** By account. */
  readonly atOnce: Pick<AtOnce<string | number>, 'run'>;
}

/** The areas of a caller as vector tiles. Answered from memory. */
export function areaTilesRoute(ports: AreaTilePorts): Route {
  return {
    method: 'GET',
    path: '/tiles/areas/:z/:x/:y.mvt',
    scopes: scopeMask('read_areas'),
    isOpenToGroups: true,
    versions: ['v3'],
    shedAs: 'bulk',
    describe: AREA_TILE,
    isFromMemory: true,
    handle: (call) => answered(ports, call),
  };
}

function answered(
  { areas, bulkCalls, atOnce }: AreaTilePorts,
  { caller: { accountId, worldIds }, params, header }: Call,
): Answer | Promise<Answer> {
  const tile = tileOf(params);
  if (tile === null) return malformedTile();
  const box = tileBox(tile);
  const answer = (digest: RevisionDigest): Answer => {
    const etag = etagOf(digest);
    const nothing = tileAnswer(etag, null, header('if-none-match'));
    if (nothing.status === 304 || digest.count === 0) return nothing;
    const fileHeaders = { ...nothing.headers, 'Content-Type': TILE_TYPE };
    return bulkCalls.file(
      accountId,
      () => made(areas.inBox(worldIds, box), tile, nothing),
      fileHeaders,
      errorAnswer('TOO_COMPLEX', TOO_COMPLEX),
    );
  };
  const steps = areas.digest(worldIds, box);
  // Nearly always the first step is the only one. Others take turns with other long computations.
  const next = ({ done, value }: IteratorResult<undefined, RevisionDigest>): Answer | Promise<Answer> =>
    done === true ? answer(value) : bulkCalls.run(accountId, () => steps).then(answer);
  const first = atOnce.run(accountId, () => steps.next());
  return first instanceof Promise ? first.then(next) : next(first);
}

/** The tile, or the other answer. */
function* made(areas: Steps<Area[]>, tile: Tile, nothing: Answer): Steps<Buffer> {
  const bytes = yield* areaTile(yield* areas, tile);
  if (bytes === null) throw new NotBegun(nothing);
  return bytes;
}

/** Weak: a proxy may compress the tile. */
function etagOf({ count, a, b }: RevisionDigest): string {
  return `W/"${DRAWING}-${count}-${a.toString(36)}${b.toString(36).padStart(7, '0')}"`;
}
