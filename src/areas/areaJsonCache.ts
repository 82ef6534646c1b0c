import { InvariantError } from '../lib/invariant.ts';
import { areaView } from './areaViews.ts';
import { areaFeature } from './geojsonOut.ts';
import type { StoredArea } from './storedArea.ts';

/** How an area is shown: in the API's own words, or as a Feature of GeoJSON. */
export type AreaFormat = 'json' | 'geojson';

export interface AreaJsonCacheLimits {
  /** Of all texts that are kept, their overhead included. */
  readonly bytes: number;
  /** Of those of one world. */
  readonly bytesPerWorld: number;
}

/** The longest page, two hundred areas of two thousand vertices each, is 20 MB. */
const LIMITS: AreaJsonCacheLimits = { bytes: 96e6, bytesPerWorld: 24e6 };
/** What an entry takes beside its text. */
const OVERHEAD_BYTES = 400;

interface Kept {
  readonly revision: number;
  readonly text: Buffer;
}

interface WorldTexts {
  bytes: number;
  /** By id and format; the one that was asked for last is the last. */
  readonly kept: Map<number, Kept>;
}

/**
 * Caches the JSON of areas, made once for each revision. Each world has a limit of its own. Beyond the limit of all
 * worlds together, texts are dropped from worlds that have at least the average, beginning with the world that was read
 * longest ago. So reading a large world does not drop the texts of small ones.
 */
export class AreaJsonCache {
  readonly #limits: AreaJsonCacheLimits;
  /** The one that was asked for last is the last. */
  readonly #worlds = new Map<number, WorldTexts>();
  #bytes = 0;

  constructor(limits = LIMITS) {
    this.#limits = limits;
  }

  /** Of all that is kept. */
  get bytes(): number {
    return this.#bytes;
  }

  /** The text if it is kept. */
  kept(area: StoredArea, format: AreaFormat): Buffer | undefined {
    const world = this.#worlds.get(area.worldId);
    const key = keyOf(area, format);
    const found = world?.kept.get(key);
    if (world === undefined || found?.revision !== area.revision) return undefined;
    touch(world.kept, key, found);
    touch(this.#worlds, area.worldId, world);
    return found.text;
  }

  /** The text, made where it is not kept: up to a millisecond for the largest areas. */
  text(area: StoredArea, format: AreaFormat): Buffer {
    const kept = this.kept(area, format);
    if (kept !== undefined) return kept;
    const json = JSON.stringify(format === 'geojson' ? areaFeature(area) : areaView(area));
    // Not from Node's pool, of which a small text would keep 8 KB.
    const text = Buffer.allocUnsafeSlow(Buffer.byteLength(json));
    text.write(json);
    this.#keep(area, format, text);
    return text;
  }

  #keep(area: StoredArea, format: AreaFormat, text: Buffer): void {
    const bytes = text.length + OVERHEAD_BYTES;
    if (bytes > this.#limits.bytesPerWorld) return;
    const key = keyOf(area, format);
    this.#drop(area.worldId, key);
    for (;;) {
      const own = this.#worlds.get(area.worldId)?.bytes ?? 0;
      const isOverOwn = own + bytes > this.#limits.bytesPerWorld;
      if (!isOverOwn && this.#bytes + bytes <= this.#limits.bytes) break;
      this.#dropOldest(isOverOwn || this.#isLarge(own) ? area.worldId : this.#oldestLarge());
    }
    const world = this.#worlds.get(area.worldId) ?? { bytes: 0, kept: new Map() };
    world.kept.set(key, { revision: area.revision, text });
    world.bytes += bytes;
    this.#bytes += bytes;
    touch(this.#worlds, area.worldId, world);
  }

  /** A world that holds so much holds no less than worlds do on average. */
  #isLarge(bytes: number): boolean {
    return bytes * this.#worlds.size >= this.#bytes;
  }

  /** Smaller ones that it finds on the way are as good as asked for just now. */
  #oldestLarge(): number {
    for (const [worldId, world] of this.#worlds) {
      if (this.#isLarge(world.bytes)) return worldId;
      touch(this.#worlds, worldId, world);
    }
    throw new InvariantError('no world holds what worlds hold on average');
  }

  #dropOldest(worldId: number): void {
    const world = this.#worlds.get(worldId) as WorldTexts;
    this.#drop(worldId, firstKey(world.kept));
  }

  #drop(worldId: number, key: number): void {
    const world = this.#worlds.get(worldId);
    const found = world?.kept.get(key);
    if (world === undefined || found === undefined) return;
    const bytes = found.text.length + OVERHEAD_BYTES;
    world.kept.delete(key);
    world.bytes -= bytes;
    this.#bytes -= bytes;
    if (world.kept.size === 0) this.#worlds.delete(worldId);
  }
}

function keyOf({ id }: StoredArea, format: AreaFormat): number {
  return 2 * id + (format === 'geojson' ? 1 : 0);
}

/** Puts an entry at the end of a map. */
function touch<T>(map: Map<number, T>, key: number, value: T): void {
  map.delete(key);
  map.set(key, value);
}

/** Of a map that is not empty. */
function firstKey(map: ReadonlyMap<number, unknown>): number {
  return map.keys().next().value as number;
}
