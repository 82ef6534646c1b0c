import { TileArchive } from './tileArchive.ts';
import { tileTemplate } from './tileRoute.ts';

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
