import { type Answer, jsonAnswer, type StreamedBody } from '../http/answer.ts';
import { InvariantError } from '../lib/errors.ts';
import { FairSemaphore } from '../lib/fairSemaphore.ts';
import type { Steps, WorkTurns } from '../lib/workTurns.ts';
import { areaView, type StoredArea } from './area.ts';
import { areaFeature } from './geojson.ts';

/** A list of at most this estimated size is built as a whole. */
const WHOLE_BYTES = 128 * 1024;
const PIECE_BYTES = 64 * 1024;
/** What the JSON of an area takes, without its vertices and for each of them: more than most do. */
const AREA_BYTES = 600;
const VERTEX_BYTES = 50;
/** Texts of up to this size are built at once, in half a millisecond; larger ones in turns. */
const AT_ONCE_BYTES = 48 * 1024;
/** Long lists that are sent at once: an account's own wait for each other, as long as their readers take. */
const LONG_LISTS = { running: 1_000, runningPerKey: 8, waiting: 5_000, waitingPerKey: 200 };

interface Page {
  readonly accountId: number;
  readonly areas: readonly StoredArea[];
  readonly format: AreaFormat;
}

/**
 * Answers with areas, from texts that are cached. Texts that take long are made in the work turns of the calling
 * account. A long list is made piece by piece while the caller reads it, so an unread answer takes the memory of one
 * piece.
 */
export class AreaAnswers {
  readonly #turns: WorkTurns<string | number>;
  readonly #texts: AreaJsonCache;
  readonly #longLists = new FairSemaphore<number>(LONG_LISTS);

  constructor(turns: WorkTurns<string | number>, texts = new AreaJsonCache()) {
    this.#turns = turns;
    this.#texts = texts;
  }

  /** One area. */
  detail(accountId: number, area: StoredArea, format: AreaFormat): Answer | Promise<Answer> {
    const answer = () => jsonAnswer(this.#texts.text(area, format).toString());
    return this.#whenMade({ accountId, areas: [area], format }, answer);
  }

  /** A list of areas, as they are now, whatever becomes of them before it is sent. */
  list(page: Page, meta: object): Answer | Promise<Answer> {
    const { areas, format } = page;
    const [opening, closing] =
      format === 'geojson' ? ['{"type":"FeatureCollection","features":[', ']}'] : ['[', ']'];
    const before = `{"data":${opening}`;
    const after = `${closing},"meta":${JSON.stringify(meta)}}`;
    if (estimatedBytes(areas) > WHOLE_BYTES)
      return { status: 200, body: this.#longBody(page, before, after) };
    return this.#whenMade(page, () => {
      const texts = areas.map((area) => this.#texts.text(area, format).toString());
      return { status: 200, body: `${before}${texts.join(',')}${after}` };
    });
  }

  /** Answers at once where most texts are kept, else after they were made in turns. */
  #whenMade(page: Page, answer: () => Answer): Answer | Promise<Answer> {
    const missing = page.areas.filter((area) => this.#texts.kept(area, page.format) === undefined);
    if (estimatedBytes(missing) <= AT_ONCE_BYTES) return answer();
    return this.#turns.run(page.accountId, this.#make(missing, page.format)).then(answer);
  }

  *#make(areas: readonly StoredArea[], format: AreaFormat): Steps<void> {
    for (const area of areas) {
      this.#texts.text(area, format);
      yield;
    }
  }

  #longBody(page: Page, before: string, after: string): StreamedBody {
    const { accountId, areas } = page;
    let at = 0;
    return {
      bytes: this.#keptBytes(page, before, after),
      open: () => this.#longLists.acquire(accountId),
      close: () => this.#longLists.release(accountId),
      next: async (take) => {
        const opening = at === 0 ? before : ',';
        at = await this.#turns.run(accountId, this.#nextPiece(page, at, opening, after, take));
        return at < areas.length;
      },
    };
  }

  /** Hands over what begins with this area; returns where the next piece does. Sending is work of the same turn. */
  *#nextPiece(
    { areas, format }: Page,
    from: number,
    opening: string,
    closing: string,
    take: (piece: Buffer) => void,
  ): Steps<number> {
    const parts: Buffer[] = [Buffer.from(opening)];
    let bytes = 0;
    let at = from;
    for (; at < areas.length && bytes < PIECE_BYTES; at++) {
      const area = areas[at] as StoredArea;
      const kept = this.#texts.kept(area, format);
      const text = kept ?? this.#texts.text(area, format);
      if (at > from) parts.push(COMMA);
      parts.push(text);
      bytes += text.length;
      if (kept === undefined) yield;
    }
    if (at === areas.length) parts.push(Buffer.from(closing));
    take(Buffer.concat(parts));
    return at;
  }

  /** How long the whole list is; null unless all of its texts are kept. */
  #keptBytes({ areas, format }: Page, before: string, after: string): number | null {
    let bytes = Buffer.byteLength(before) + Buffer.byteLength(after) + areas.length - 1;
    for (const area of areas) {
      const text = this.#texts.kept(area, format);
      if (text === undefined) return null;
      bytes += text.length;
    }
    return bytes;
  }
}

const COMMA = Buffer.from(',');

function estimatedBytes(areas: readonly StoredArea[]): number {
  let bytes = 0;
  for (const { definition } of areas) {
    const { geometry } = definition;
    bytes += AREA_BYTES + VERTEX_BYTES * ('points' in geometry ? geometry.points.length / 2 : 1);
  }
  return bytes;
}

/** How an area is shown: in the API's own words, or as a Feature of GeoJSON. */
type AreaFormat = 'json' | 'geojson';

/** Of kept texts with their overhead. The longest page, two hundred areas of two thousand vertices each, is 20 MB. */
const LIMITS = { bytes: 96e6, bytesPerWorld: 24e6 };
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
  readonly #limits: typeof LIMITS;
  /** The one that was asked for last is the last. */
  readonly #worlds = new Map<number, WorldTexts>();
  #bytes = 0;

  constructor(limits = LIMITS) {
    this.#limits = limits;
  }

  /** The size of everything that is kept. */
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

/** The first key of a map that is not empty. */
function firstKey(map: ReadonlyMap<number, unknown>): number {
  return map.keys().next().value as number;
}
