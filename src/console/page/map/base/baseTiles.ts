import type { RasterSourceSpecification, VectorSourceSpecification } from 'maplibre-gl';

type TileSource = VectorSourceSpecification | RasterSourceSpecification;

/** What the map is drawn on: a style of its own, or a source of tiles with the ids of their layers. */
export type BaseTiles =
  | { readonly styleUrl: string }
  | { readonly source: TileSource; readonly layers: readonly string[] };

/** What the service was given (CONSOLE_TILES); null: the coasts and borders that come with it. */
export const baseTiles: BaseTiles | null = read();

function read(): BaseTiles | null {
  const json = document.querySelector<HTMLElement>('#console')?.dataset['tiles'];
  if (json === undefined) return null;
  const tiles = JSON.parse(json) as BaseTiles;
  if ('styleUrl' in tiles) return tiles;
  // The map fetches them in a worker, which wants whole addresses.
  const urls = tiles.source.tiles?.map((path) => location.origin + path) ?? [];
  return { source: { ...tiles.source, tiles: urls }, layers: tiles.layers };
}
