import { type Tile, tileAt, unitAt, VectorTile } from '../../geo/vectorTile.ts';
import { Pace, type Steps } from '../../lib/workTurns.ts';
import { readNames } from '../device.ts';

/** The statuses of devices that have a position. */
export const LOCATED_STATUSES = ['moving', 'parked', 'offline'] as const;
export type LocatedStatus = (typeof LOCATED_STATUSES)[number];

/** A tile with more devices shows clusters of them. */
export const TILE_DEVICES_MAX = 2_000;
/** A cluster is a cell of the tile this many zooms deeper, so a tile has up to 16 by 16 of them. */
export const CLUSTER_ZOOMS = 4;
const CELLS_WIDE = 2 ** CLUSTER_ZOOMS;

/** A device as a tile shows it. */
export interface TileDevice {
  /** See namesText. */
  readonly names: string;
  /** In steps of the map. */
  readonly x: number;
  readonly y: number;
  readonly status: LocatedStatus;
  readonly headingDeg: number;
  readonly speedKmh: number;
  readonly recordedAtMs: number;
}

/** Devices that are counted together, with the sums of their places. */
export interface Cluster {
  readonly moving: number;
  readonly parked: number;
  readonly offline: number;
  readonly sumX: number;
  readonly sumY: number;
}

/** The devices of a tile by the cells of its clusters. */
export class TileClusters {
  readonly #zoom: number;
  /** Of each cell: how many devices of each status, and the sums of x and y. */
  readonly #sums = new Float64Array(CELLS_WIDE ** 2 * SUMS);

  constructor({ z }: Tile) {
    this.#zoom = z + CLUSTER_ZOOMS;
  }

  /** Adds devices that are in one cell. */
  add(devices: Cluster): void {
    const count = countOf(devices);
    const at = this.#cellAt(Math.floor(devices.sumX / count), Math.floor(devices.sumY / count));
    for (const [n, status] of LOCATED_STATUSES.entries()) this.#addTo(at + n, devices[status]);
    this.#addTo(at + SUM_X, devices.sumX);
    this.#addTo(at + SUM_Y, devices.sumY);
  }

  addDevice(x: number, y: number, status: LocatedStatus): void {
    const at = this.#cellAt(x, y);
    this.#addTo(at + LOCATED_STATUSES.indexOf(status), 1);
    this.#addTo(at + SUM_X, x);
    this.#addTo(at + SUM_Y, y);
  }

  /** Those that have devices, row by row from the north-west. */
  get all(): Cluster[] {
    const clusters: Cluster[] = [];
    for (let at = 0; at < this.#sums.length; at += SUMS) {
      const [moving, parked, offline, sumX, sumY] = this.#sums.subarray(at, at + SUMS) as unknown as Sums;
      const cluster = { moving, parked, offline, sumX, sumY };
      if (countOf(cluster) > 0) clusters.push(cluster);
    }
    return clusters;
  }

  #cellAt(x: number, y: number): number {
    const column = tileAt(x, this.#zoom) % CELLS_WIDE;
    const row = tileAt(y, this.#zoom) % CELLS_WIDE;
    return SUMS * (CELLS_WIDE * row + column);
  }

  #addTo(at: number, value: number): void {
    this.#sums[at] = (this.#sums[at] as number) + value;
  }
}

type Sums = [moving: number, parked: number, offline: number, sumX: number, sumY: number];
const SUMS = 5;
const SUM_X = 3;
const SUM_Y = 4;

export function countOf({ moving, parked, offline }: Omit<Cluster, 'sumX' | 'sumY'>): number {
  return moving + parked + offline;
}

/** What a tile shows: its devices in the order of IMEIs, or clusters of them. */
export type TileContent =
  | { readonly devices: readonly TileDevice[] }
  | { readonly clusters: readonly Cluster[] };

/** The tile; null where nothing is in it. Equal contents have equal bytes. */
export function* deviceTile(content: TileContent, { z }: Tile): Steps<Buffer | null> {
  const pace = new Pace();
  if ('clusters' in content) {
    const layer = new VectorTile('clusters');
    for (const cluster of content.clusters) {
      const { moving, parked, offline, sumX, sumY } = cluster;
      const count = countOf(cluster);
      const at = [unitAt(sumX / count, z), unitAt(sumY / count, z)];
      layer.add(null, { count, moving, parked, offline, unknown: 0 }, { kind: 'point', paths: [at] });
    }
    return layer.finish();
  }
  if (content.devices.length === 0) return null;
  const layer = new VectorTile('devices');
  for (const { names, x, y, status, headingDeg, speedKmh, recordedAtMs } of content.devices) {
    const shown = {
      ...readNames(names),
      status,
      heading: headingDeg,
      speed_kmh: speedKmh,
      recorded_at: Math.floor(recordedAtMs / 1_000),
    };
    layer.add(null, shown, { kind: 'point', paths: [[unitAt(x, z), unitAt(y, z)]] });
    if (pace.isDue()) yield* pace.pause();
  }
  return layer.finish();
}
