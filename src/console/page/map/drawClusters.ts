import type { Feature } from 'geojson';
import type { Map as MapLibre } from 'maplibre-gl';
import { callBytes, wait } from '../api.ts';
import { filterQuery, filters } from '../filters.ts';
import { isLarge, isSeen, isViewLive, restart, view, viewProblem } from '../largeFleet.ts';
import type { LatLng } from '../types.ts';
import { vehicleColors } from './baseStyle.ts';
import { CELLS_WIDE, LAT_MAX, readDeviceTile, type TilePoint, tilesOver } from './deviceTiles.ts';
import { clustered } from './mapState.ts';
import type { Overlay } from './overlay.ts';
import { onScheme, scheme } from './scheme.ts';
import { clusterLook, colorOf, countOf, drawShares, isShares } from './shares.ts';

/** For each tile in view: an account can look on for an hour without reaching its limits. */
const TILE_EVERY_MS = 10_000;

/**
 * Draws clusters of a fleet that is too large, as long as the vehicles in view do not come one by one, until the returned
 * function is called. `begin` is told places around the first ones.
 */
export function drawClusters(map: MapLibre, overlay: Overlay, begin: (places: LatLng[]) => void): () => void {
  const ending = new AbortController();
  let hasBegun = false;
  /** When all tiles were read last. */
  let readAtMs = 0;
  /** By the path of their tile. */
  let shown = new Map<string, readonly TilePoint[]>();
  const show = (next: typeof shown): void => {
    shown = next;
    const points = [...shown.values()].flat();
    overlay.show(points.map(featureOf));
    const [path] = shown.keys();
    const vehicles = points.reduce((sum, point) => sum + countOf(point), 0);
    clustered.value = path === undefined ? null : { vehicles, path };
  };
  restart(ending.signal, async (asked) => {
    const [seen, query] = [view.value, filterQuery(filters.value)];
    if (!isLarge.value || isViewLive.value || seen === null) return show(new Map());
    if (!isSeen.value) return;
    const tiles = tilesOver(seen.box, seen.zoom);
    const everyMs = TILE_EVERY_MS * tiles.length;
    for (; !asked.aborted; await wait(everyMs, asked)) {
      const known = Date.now() - readAtMs < everyMs ? shown : new Map();
      const read = await Promise.all(
        tiles.map(async (tile) => {
          const path = `/api/v1/tiles/devices/${tile.z}/${tile.x}/${tile.y}.mvt${query === '' ? '' : `?${query}`}`;
          const reply = known.has(path) ? null : await callBytes(path, asked);
          const problem = reply?.ok === false ? reply.message : null;
          const points = reply?.ok ? readDeviceTile(reply.data, tile) : shown.get(path);
          return { path, points: points ?? [], problem };
        }),
      );
      if (asked.aborted) return;
      if (known !== shown) readAtMs = Date.now();
      viewProblem.value = read.find(({ problem }) => problem !== null)?.problem ?? null;
      show(new Map(read.map(({ path, points }) => [path, points])));
      if (!hasBegun) begin(cornersAround([...shown.values()].flat(), tiles[0]?.z ?? 0));
      hasBegun = true;
    }
  });
  map.setMissingStyleImageResolver((id) => {
    if (isShares(id)) map.addImage(id, drawShares(id, vehicleColors(scheme())), { pixelRatio: 2 });
  });
  const stop = onScheme(() => show(shown));
  return () => {
    ending.abort();
    stop();
  };
}

/** Vehicles are up to the width of a cell away from the mean of their places. */
function cornersAround(points: readonly TilePoint[], zoom: number): LatLng[] {
  const cellDeg = 360 / (CELLS_WIDE * 2 ** zoom);
  return points.flatMap(({ lng, lat }) => [
    { lng: lng - cellDeg / 2, lat: Math.max(-LAT_MAX, lat - cellDeg / 2) },
    { lng: lng + cellDeg / 2, lat: Math.min(LAT_MAX, lat + cellDeg / 2) },
  ]);
}

function featureOf(point: TilePoint): Feature {
  const { lng, lat } = point;
  const colors = vehicleColors(scheme());
  const properties =
    'counts' in point
      ? clusterLook(point.counts, colors)
      : { imei: point.imei, name: point.name ?? point.imei, color: colorOf(point.status, colors) };
  return { type: 'Feature', properties, geometry: { type: 'Point', coordinates: [lng, lat] } };
}
