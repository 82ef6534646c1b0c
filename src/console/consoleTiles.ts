import type { Express, RequestHandler } from 'express';
import { errorAnswer } from '../http/answer.ts';
import { named, send } from '../http/expressApp.ts';
import { CONSOLE_PATH } from './consoleFiles.ts';
import { isTile, TileArchive } from './tileArchive.ts';

/** What the map of the page is drawn on. */
export interface PageTiles {
  /** JSON for the page: `{styleUrl}`, or `{source, layers}` of an archive. Null: the map that comes with it. */
  readonly json: string | null;
  /** Another origin that the page may fetch from. */
  readonly origin: string | null;
  readonly archive: TileArchive | null;
}

const NONE: PageTiles = { json: null, origin: null, archive: null };

/** A file that cannot be read costs the streets and no more: `onError` is told, and the page has the map without. */
export async function readPageTiles(
  tiles: ConsoleTiles | null,
  onError: (error: unknown) => void,
): Promise<PageTiles> {
  if (tiles === null) return NONE;
  if ('styleUrl' in tiles) {
    const { styleUrl } = tiles;
    return { json: JSON.stringify({ styleUrl }), origin: new URL(styleUrl).origin, archive: null };
  }
  try {
    const archive = await TileArchive.open(tiles.file);
    const source = { ...archive.source, tiles: [tileTemplate(archive)] };
    return { json: JSON.stringify({ source, layers: archive.layers }), origin: null, archive };
  } catch (error) {
    onError(error);
    return NONE;
  }
}

/** What the map of the console is drawn on: the address of a MapLibre style, or an archive of tiles in a file. */
export type ConsoleTiles = { readonly styleUrl: string } | { readonly file: string };

const TILE_PATH = `${CONSOLE_PATH}/tiles/:z/:x/:y`;

/** What follows the origin in the addresses of all tiles, as MapLibre fills it in. */
function tileTemplate({ version }: TileArchive): string {
  return `${CONSOLE_PATH}/tiles/{z}/{x}/{y}?v=${version}`;
}

/** GET /console/tiles/{z}/{x}/{y}: a tile, 204 if the archive lacks it, 404 for an invalid tile or without archive. */
export function tileRoute(
  app: Express,
  methods: RequestHandler,
  archiveOf: () => Promise<TileArchive | null>,
): void {
  app.all(TILE_PATH, named(TILE_PATH), methods, async (request, response) => {
    const { z, x, y } = request.params as { z: string; x: string; y: string };
    const archive = isTile(z, x, y) ? await archiveOf() : null;
    if (archive === null) return send(response, errorAnswer('NOT_FOUND'), request.method);
    const bytes = await archive.tile(Number(z), Number(x), Number(y));
    const isPinned = request.originalUrl.endsWith(`?v=${archive.version}`);
    response.setHeader('Cache-Control', isPinned ? 'public, max-age=31536000, immutable' : 'no-cache');
    response.statusCode = bytes === null ? 204 : 200;
    if (bytes !== null) {
      response.setHeader('Content-Type', archive.contentType);
      response.setHeader('Content-Length', bytes.length);
      if (archive.encoding !== null) response.setHeader('Content-Encoding', archive.encoding);
    }
    response.end(request.method === 'HEAD' ? undefined : bytes);
  });
}
