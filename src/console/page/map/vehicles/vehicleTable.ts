import type { KnownDevice } from '../../fleet.ts';
import type { LatLng } from '../../types.ts';

/** A row: x and y of where the move began, x and y of where it ends, when it began and ends, and how it looks. */
export const ROW_BYTES = 28;
const ROW_WORDS = ROW_BYTES / 4;
const LOOK_BYTE = 24;
const ROWS_MIN = 1_024;

/** Bits of the last byte of a row. */
const SHOWN = 1;
const CHOSEN = 2;

const STATUS_CODES = { unknown: 0, offline: 1, parked: 2, moving: 3 } as const;

/** An offline vehicle fades until it has sent nothing for so long. */
const FADED_MS = 7 * 86_400_000;

/** After a longer silence a vehicle jumps to its new position: its way is unknown. */
const SILENCE_MAX_SECONDS = 60;
const GLIDE_MAX_SECONDS = 10;

/** What is listed of vehicles on one spot. */
const NEAR_MAX = 30;

export interface Near {
  readonly count: number;
  /** Nearest first; at most NEAR_MAX. */
  readonly imeis: readonly string[];
}

/** A vehicle, and its pixels east and south of a place. */
export interface OnView {
  readonly imei: string;
  readonly x: number;
  readonly y: number;
}

/** Of a view, in pixels of the page. */
export interface SizePx {
  readonly width: number;
  readonly height: number;
}

/** Where every vehicle is, as the bytes that the graphics card gets: it works out the place at each moment itself. */
export class VehicleTable {
  bytes = new ArrayBuffer(ROWS_MIN * ROW_BYTES);
  /** Rows in use or used before. */
  rows = 0;
  /** Until when something moves, in seconds. */
  movingUntil = 0;
  readonly dirty = new DirtyBlocks();
  readonly #isStill: boolean;
  readonly #rowOf = new Map<string, number>();
  readonly #imeis: (string | null)[] = [];
  readonly #recordedAtMs: number[] = [];
  readonly #free: number[] = [];
  #ints = new Int32Array(this.bytes);
  #floats = new Float32Array(this.bytes);
  #looks = new Uint8Array(this.bytes);
  #chosen: string | null = null;

  /** `isStill`: vehicles jump from point to point. */
  constructor(isStill = false) {
    this.#isStill = isStill;
  }

  /**
   * Takes a device over; from where it is shown it moves to its place within the time that it took itself. `now` is in the
   * seconds of all methods, `clockMs` the time of day.
   */
  put(device: KnownDevice, now: number, clockMs: number): void {
    const { imei, location } = device;
    if (location === null) {
      this.remove(imei);
      return;
    }
    const place = stepsOf({ lng: location.longitude, lat: location.latitude });
    const { recordedAtMs } = location;
    const known = this.#rowOf.get(imei);
    const row = known ?? this.#add(imei);
    const at = row * ROW_WORDS;
    const isHere = this.#ints[at + 2] === place.x && this.#ints[at + 3] === place.y;
    if (known === undefined || !isHere) {
      const seconds = known === undefined ? 0 : this.#glideSeconds(row, recordedAtMs);
      const from = seconds === 0 ? place : this.#stepsAt(row, now);
      this.#ints[at] = from.x;
      this.#ints[at + 1] = from.y;
      this.#ints[at + 2] = place.x;
      this.#ints[at + 3] = place.y;
      this.#floats[at + 4] = now;
      this.#floats[at + 5] = now + seconds;
      this.movingUntil = Math.max(this.movingUntil, now + seconds);
    }
    this.#recordedAtMs[row] = recordedAtMs;
    const look = row * ROW_BYTES + LOOK_BYTE;
    this.#looks[look] = Math.round((location.heading / 360) * 256);
    this.#looks[look + 1] = STATUS_CODES[device.status];
    this.#looks[look + 2] = SHOWN | (imei === this.#chosen ? CHOSEN : 0);
    const age = device.status === 'offline' ? (clockMs - recordedAtMs) / FADED_MS : 0;
    this.#looks[look + 3] = Math.round(255 * Math.max(0, Math.min(1, age)));
    this.dirty.add(row);
  }

  remove(imei: string): void {
    const row = this.#rowOf.get(imei);
    if (row === undefined) return;
    this.#rowOf.delete(imei);
    this.#imeis[row] = null;
    this.#looks[row * ROW_BYTES + LOOK_BYTE + 2] = 0;
    this.#free.push(row);
    this.dirty.add(row);
  }

  /** The one that stands out. */
  choose(imei: string | null): void {
    for (const [one, bit] of [
      [this.#chosen, 0],
      [imei, CHOSEN],
    ] as const) {
      const row = one === null ? undefined : this.#rowOf.get(one);
      if (row === undefined) continue;
      this.#looks[row * ROW_BYTES + LOOK_BYTE + 2] = SHOWN | bit;
      this.dirty.add(row);
    }
    this.#chosen = imei;
  }

  /** Where it is shown. */
  placeOf(imei: string, now: number): LatLng | null {
    const row = this.#rowOf.get(imei);
    return row === undefined ? null : lngLatOf(this.#stepsAt(row, now));
  }

  /** How many vehicles are within some pixels of a place, and the nearest; `worldPx` is the width of the world. */
  near(place: LatLng, worldPx: number, maxPx: number, now: number): Near {
    const { x, y } = stepsOf(place);
    const nearest: { imei: string; px: number }[] = [];
    let count = 0;
    for (let row = 0; row < this.rows; row++) {
      const imei = this.#imeis[row];
      if (imei == null) continue;
      const at = row * ROW_WORDS;
      const part = this.#partOf(at, now);
      const dy = (this.#along(at + 1, part) - y) * (worldPx / STEPS_Y);
      if (dy > maxPx || dy < -maxPx) continue;
      const px = Math.hypot(((this.#along(at, part) - x) | 0) * (worldPx / STEPS_X), dy);
      if (px > maxPx) continue;
      count++;
      if (nearest.length === NEAR_MAX && px >= (nearest.at(-1)?.px ?? 0)) continue;
      const place = nearest.findIndex((other) => other.px > px);
      nearest.splice(place === -1 ? nearest.length : place, 0, { imei, px });
      if (nearest.length > NEAR_MAX) nearest.pop();
    }
    return { count, imeis: nearest.map(({ imei }) => imei) };
  }

  /** The vehicles in a view around a place, at most `max`, with their pixels from its middle; `worldPx` as above. */
  within(place: LatLng, worldPx: number, { width, height }: SizePx, now: number, max: number): OnView[] {
    const center = stepsOf(place);
    const found: OnView[] = [];
    for (let row = 0; row < this.rows && found.length < max; row++) {
      const imei = this.#imeis[row];
      if (imei == null) continue;
      const { x, y } = this.#pxFrom(center, row, worldPx, now);
      if (Math.abs(x) <= width / 2 && Math.abs(y) <= height / 2) found.push({ imei, x, y });
    }
    return found;
  }

  /** Of these vehicles those that are known, with their pixels from a place. */
  placed(imeis: readonly string[], place: LatLng, worldPx: number, now: number): OnView[] {
    const center = stepsOf(place);
    return imeis.flatMap((imei) => {
      const row = this.#rowOf.get(imei);
      return row === undefined ? [] : [{ imei, ...this.#pxFrom(center, row, worldPx, now) }];
    });
  }

  #pxFrom(center: Steps, row: number, worldPx: number, now: number): { x: number; y: number } {
    const at = row * ROW_WORDS;
    const part = this.#partOf(at, now);
    return {
      x: ((this.#along(at, part) - center.x) | 0) * (worldPx / STEPS_X),
      y: (this.#along(at + 1, part) - center.y) * (worldPx / STEPS_Y),
    };
  }

  *places(now: number): Iterable<LatLng> {
    for (const row of this.#rowOf.values()) yield lngLatOf(this.#stepsAt(row, now));
  }

  #add(imei: string): number {
    const row = this.#free.pop() ?? this.rows++;
    if (this.rows * ROW_BYTES > this.bytes.byteLength) this.#grow();
    this.#rowOf.set(imei, row);
    this.#imeis[row] = imei;
    return row;
  }

  #grow(): void {
    const before = this.#looks;
    this.bytes = new ArrayBuffer(this.bytes.byteLength * 2);
    this.#ints = new Int32Array(this.bytes);
    this.#floats = new Float32Array(this.bytes);
    this.#looks = new Uint8Array(this.bytes);
    this.#looks.set(before);
  }

  #glideSeconds(row: number, recordedAtMs: number): number {
    const seconds = (recordedAtMs - (this.#recordedAtMs[row] as number)) / 1_000;
    if (this.#isStill || seconds <= 0 || seconds > SILENCE_MAX_SECONDS) return 0;
    return Math.min(seconds, GLIDE_MAX_SECONDS);
  }

  #stepsAt(row: number, now: number): Steps {
    const at = row * ROW_WORDS;
    const part = this.#partOf(at, now);
    return { x: this.#along(at, part), y: this.#along(at + 1, part) };
  }

  /** How much of the way is done: 0 to 1. */
  #partOf(at: number, now: number): number {
    const began = this.#floats[at + 4] as number;
    const ends = this.#floats[at + 5] as number;
    return now >= ends ? 1 : Math.max(0, (now - began) / (ends - began));
  }

  #along(at: number, part: number): number {
    const from = this.#ints[at] as number;
    const way = ((this.#ints[at + 2] as number) - from) | 0;
    return (from + Math.round(way * part)) | 0;
  }
}

/** Rows that are uploaded together: few calls where many have changed, and few bytes where few have. */
export const BLOCK_ROWS = 256;

/** Which rows of a table have changed, in blocks. */
export class DirtyBlocks {
  readonly #blocks = new Set<number>();

  add(row: number): void {
    this.#blocks.add(Math.floor(row / BLOCK_ROWS));
  }

  /** Gives each run of changed rows once, and forgets them. */
  take(rows: number, give: (from: number, to: number) => void): void {
    const blocks = Int32Array.from(this.#blocks).sort();
    this.#blocks.clear();
    for (let index = 0; index < blocks.length; index++) {
      const first = blocks[index] as number;
      while (blocks[index + 1] === (blocks[index] as number) + 1) index++;
      give(first * BLOCK_ROWS, Math.min(rows, ((blocks[index] as number) + 1) * BLOCK_ROWS));
    }
  }

  clear(): void {
    this.#blocks.clear();
  }
}

/**
 * Places as whole numbers of 32 bits in Web Mercator: the world has 2^32 steps from west to east, so that the
 * difference of two places is the short way around, and 2^31 from north to south (steps of 1 to 2 cm).
 */
interface Steps {
  readonly x: number;
  readonly y: number;
}

export const STEPS_X = 2 ** 32;
export const STEPS_Y = 2 ** 31;
/** Beyond it the map ends. */
const LAT_MAX = 85.051;

export function stepsOf({ lng, lat }: LatLng): Steps {
  const clamped = Math.max(-LAT_MAX, Math.min(LAT_MAX, lat));
  const y = (1 - Math.atanh(Math.sin((clamped * Math.PI) / 180)) / Math.PI) / 2;
  return { x: Math.round((lng / 360) * STEPS_X) | 0, y: Math.round(y * STEPS_Y) };
}

export function lngLatOf({ x, y }: Steps): LatLng {
  const lat = (Math.atan(Math.sinh(Math.PI * (1 - (2 * y) / STEPS_Y))) * 180) / Math.PI;
  return { lng: (x / STEPS_X) * 360, lat };
}
