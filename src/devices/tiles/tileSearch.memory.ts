import { mapX, mapY, type Tile, tileAt, tileBox } from '../../geo/vectorTile.ts';
import { statusAt } from '../device.ts';
import type { DeviceColumns } from '../deviceColumns.memory.ts';
import type { Region } from '../index/regionWalk.ts';
import { boxRegion } from '../living/boxRegion.ts';
import { RegionSearch } from '../living/regionSearch.memory.ts';
import type { RowFilter } from '../living/rowFilter.memory.ts';
import {
  CLUSTER_ZOOMS,
  countOf,
  type LocatedStatus,
  TILE_DEVICES_MAX,
  TileClusters,
  type TileContent,
  type TileDevice,
} from './deviceTile.ts';
import type { TileCounts } from './tileCounts.memory.ts';

/** The positions of a tile: each is in one tile of a zoom. */
export function tileRegion(tile: Tile): Region {
  const { z, x, y } = tile;
  const { minX, minY, maxX, maxY } = tileBox(tile);
  const isLast = y === 2 ** z - 1;
  const box = { west: minX, south: isLast ? -90 : minY, east: maxX, north: y === 0 ? 90 : maxY };
  return {
    // The east and south boundaries belong to the neighbouring tiles.
    ...boxRegion(box),
    contains: (lat, lng) => tileAt(mapX(lng), z) === x && tileAt(mapY(lat), z) === y,
  };
}

/** What a tile shows of worlds whose counts are prepared, without a filter. */
export function countedTile(columns: DeviceColumns, worlds: readonly TileCounts[], tile: Tile): TileContent {
  let count = 0;
  for (const counts of worlds) {
    counts.visit(
      tile,
      0,
      (cell) => {
        count += countOf(cell);
      },
      () => count++,
    );
  }
  if (count > TILE_DEVICES_MAX) {
    const clusters = new TileClusters(tile);
    for (const counts of worlds) {
      const addRow = (row: number): void => {
        const { x, y, status } = counts.counted(row);
        clusters.addDevice(x, y, status);
      };
      counts.visit(tile, CLUSTER_ZOOMS, (cell) => clusters.add(cell), addRow);
    }
    return { clusters: clusters.all };
  }
  const rows: number[] = [];
  for (const counts of worlds)
    counts.visit(
      tile,
      Number.POSITIVE_INFINITY,
      () => {},
      (row) => rows.push(row),
    );
  const nowMs = Math.max(0, ...worlds.map((counts) => counts.nowMs));
  return { devices: inOrder(columns, rows).map((row) => tileDevice(columns, row, nowMs)) };
}

function inOrder(columns: DeviceColumns, rows: readonly number[]): number[] {
  return rows.toSorted((row, other) => columns.compare(row, other));
}

/** The device of a row that has a position, as it is. */
function tileDevice(columns: DeviceColumns, row: number, nowMs: number): TileDevice {
  const recordedAtMs = columns.recordedAtMs(row);
  const speedKmh = columns.speedKmh(row);
  return {
    names: columns.names(row),
    x: mapX(columns.lng(row)),
    y: mapY(columns.lat(row)),
    status: statusAt(recordedAtMs, speedKmh, nowMs) as LocatedStatus,
    headingDeg: columns.headingDeg(row),
    speedKmh,
    recordedAtMs,
  };
}

/** What a tile shows of the devices that pass a filter. */
export class TileSearch extends RegionSearch {
  /** Nothing changes before this moment unless a device does. */
  untilMs = Number.POSITIVE_INFINITY;
  readonly #maxAgeMs: number;
  readonly #nowMs: number;
  readonly #clusters: TileClusters;
  /** The rows of its devices, one more than a tile shows if there are more; with those that have changed, as they were. */
  readonly #shown = new Map<number, TileDevice | null>();

  constructor(columns: DeviceColumns, region: Region, rows: RowFilter, tile: Tile) {
    super(columns, region, rows);
    this.#maxAgeMs = rows.filter.maxAgeMs;
    this.#nowMs = rows.nowMs;
    this.#clusters = new TileClusters(tile);
  }

  /** To be called when the search is over, before devices change. */
  content(): TileContent {
    const { columns } = this;
    if (this.#shown.size > TILE_DEVICES_MAX) return { clusters: this.#clusters.all };
    const rows = inOrder(columns, [...this.#shown.keys()]);
    return { devices: rows.map((row) => this.#shown.get(row) ?? tileDevice(columns, row, this.#nowMs)) };
  }

  protected override take(rows: Uint32Array, count: number): void {
    for (let n = 0; n < count; n++) this.#takeRow(rows[n] as number);
  }

  #takeRow(row: number): void {
    const { columns } = this;
    const recordedAtMs = columns.recordedAtMs(row);
    const status = statusAt(recordedAtMs, columns.speedKmh(row), this.#nowMs) as LocatedStatus;
    this.untilMs = Math.min(this.untilMs, recordedAtMs + this.#maxAgeMs);
    this.#clusters.addDevice(mapX(columns.lng(row)), mapY(columns.lat(row)), status);
    if (this.#shown.size <= TILE_DEVICES_MAX) this.#shown.set(row, null);
  }

  protected override keep(row: number): void {
    if (this.#shown.get(row) === null) this.#shown.set(row, tileDevice(this.columns, row, this.#nowMs));
  }
}
