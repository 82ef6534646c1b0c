import { createHash } from 'node:crypto';
import { type FileHandle, open } from 'node:fs/promises';
import type { Express, RequestHandler } from 'express';
import { Compression, type Header, PMTiles, SharedPromiseCache, type Source, TileType } from 'pmtiles';
import { errorAnswer, send } from '../http/answer.ts';
import { named } from '../http/expressApp.ts';
import { CONSOLE_PATH } from './consoleFiles.ts';

/** What the map of the page is drawn on. */
export interface PageTiles {
  /** JSON for the page: `{styleUrl}`, or `{source, layers}` of an archive. Null: the map that comes with it. */
  readonly json: string | null;
  /** Another origin that the page may fetch from. */
  readonly origin: string | null;
  readonly archive: TileArchive | null;
}

const NONE: PageTiles = { json: null, origin: null, archive: null };

/** When the file cannot be read, `onError` is called and the page has its map without streets. */
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

/** The size limit of one directory or tile. A larger one means that the archive is damaged. */
const READ_MAX_BYTES = 16_777_216;
/** Directories that stay unpacked: each leads to thousands of tiles. */
const DIRECTORIES_KEPT = 100;
const ZOOM_MAX = 24;

const CONTENT_TYPES: Partial<Record<TileType, string>> = {
  [TileType.Mvt]: 'application/vnd.mapbox-vector-tile',
  [TileType.Png]: 'image/png',
  [TileType.Jpeg]: 'image/jpeg',
  [TileType.Webp]: 'image/webp',
  [TileType.Avif]: 'image/avif',
};

const ENCODINGS: Partial<Record<Compression, string | null>> = {
  [Compression.None]: null,
  [Compression.Gzip]: 'gzip',
  [Compression.Brotli]: 'br',
};

/** A source of a MapLibre style, but for the address of its tiles. */
interface TileSource {
  readonly type: 'vector' | 'raster';
  readonly tileSize?: number;
  readonly minzoom: number;
  readonly maxzoom: number;
  readonly bounds: readonly [west: number, south: number, east: number, north: number];
  readonly attribution?: string;
}

/** A PMTiles archive of version 3 in a file. Its tiles are sent as they are stored, compressed or not. */
export class TileArchive {
  readonly source: TileSource;
  /** The ids of the layers of vector tiles. */
  readonly layers: readonly string[];
  readonly contentType: string;
  /** The Content-Encoding of every tile, or null. */
  readonly encoding: string | null;
  /** Names the content of the file. */
  readonly version: string;
  readonly #tiles: PMTiles;

  private constructor(tiles: PMTiles, header: Header, metadata: unknown, version: string) {
    const { tileType, tileCompression } = header;
    const contentType = CONTENT_TYPES[tileType];
    const encoding = ENCODINGS[tileCompression];
    if (contentType === undefined) throw new Error(`its tiles are of type ${tileType}, which is no map`);
    if (encoding === undefined) throw new Error(`its tiles are compressed by method ${tileCompression}`);
    const { attribution, vector_layers: layers } = Object(metadata) as Record<string, unknown>;
    this.source = {
      ...(tileType === TileType.Mvt ? { type: 'vector' } : { type: 'raster', tileSize: 256 }),
      minzoom: header.minZoom,
      maxzoom: header.maxZoom,
      bounds: [header.minLon, header.minLat, header.maxLon, header.maxLat],
      ...(typeof attribution === 'string' && { attribution }),
    };
    this.layers = (Array.isArray(layers) ? layers : []).map((layer) => String(Object(layer).id));
    this.contentType = contentType;
    this.encoding = encoding;
    this.version = version;
    this.#tiles = tiles;
  }

  /** Throws when the file cannot be read, or has tiles that no map shows. The file stays open. */
  static async open(path: string): Promise<TileArchive> {
    const file = await open(path);
    try {
      const { size, mtimeMs } = await file.stat();
      const version = createHash('sha256').update(`${size} ${mtimeMs}`).digest('base64url').slice(0, 16);
      const source = new FileSource(file, path);
      const cache = new SharedPromiseCache(DIRECTORIES_KEPT);
      const metadata = await new PMTiles(source, cache).getMetadata();
      const asStored = new PMTiles(source, cache, async (bytes) => bytes);
      return new TileArchive(asStored, await asStored.getHeader(), metadata, version);
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  /** The bytes of a tile; null where there is none. Throws for a damaged archive. */
  async tile(z: number, x: number, y: number): Promise<Uint8Array | null> {
    const found = await this.#tiles.getZxy(z, x, y);
    return found === undefined ? null : new Uint8Array(found.data);
  }
}

/** Whether three texts from a path name an existing tile address. */
function isTile(z: string, x: string, y: string): boolean {
  if (![z, x, y].every((text) => /^[0-9]{1,8}$/.test(text))) return false;
  const side = 2 ** Number(z);
  return Number(z) <= ZOOM_MAX && Number(x) < side && Number(y) < side;
}

class FileSource implements Source {
  readonly #file: FileHandle;
  readonly #path: string;

  constructor(file: FileHandle, path: string) {
    this.#file = file;
    this.#path = path;
  }

  getKey(): string {
    return this.#path;
  }

  async getBytes(offset: number, length: number): Promise<{ data: ArrayBuffer }> {
    if (length > READ_MAX_BYTES) throw new Error(`${this.#path} is damaged: ${length} bytes at ${offset}`);
    const bytes = new Uint8Array(length);
    const { bytesRead } = await this.#file.read(bytes, 0, length, offset);
    return { data: bytes.buffer.slice(0, bytesRead) };
  }
}
