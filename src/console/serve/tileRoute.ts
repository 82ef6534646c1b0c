import type { Express, RequestHandler } from 'express';
import { errorAnswer } from '../../http/answer.ts';
import { named } from '../../http/measure.ts';
import { send } from '../../http/send.ts';
import { CONSOLE_PATH } from './consoleFiles.ts';
import { isTile, type TileArchive } from './tileArchive.ts';

const TILE_PATH = `${CONSOLE_PATH}/tiles/:z/:x/:y`;

/** What follows the origin in the addresses of all tiles, as MapLibre fills it in. */
export function tileTemplate({ version }: TileArchive): string {
  return `${CONSOLE_PATH}/tiles/{z}/{x}/{y}?v=${version}`;
}

/** GET /console/tiles/{z}/{x}/{y}: a tile, 204 where the archive has none, 404 for what is no tile, and without archive. */
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
