import { type Answer, jsonAnswer } from '../http/answer.ts';
import type { StreamedBody } from '../http/streamedBody.ts';
import { FairSemaphore } from '../lib/fairSemaphore.ts';
import type { Steps, WorkTurns } from '../lib/workTurns.ts';
import { type AreaFormat, AreaJsonCache } from './areaJsonCache.ts';
import type { StoredArea } from './storedArea.ts';

/** Up to so many bytes, as estimated, a list is made whole. */
const WHOLE_BYTES = 128 * 1024;
const PIECE_BYTES = 64 * 1024;
/** What the JSON of an area takes, without its vertices and for each of them: more than most do. */
const AREA_BYTES = 600;
const VERTEX_BYTES = 50;
/** Texts of so many bytes are made at once, in half a millisecond; more of them in turns. */
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
  readonly #places = new FairSemaphore<number>(LONG_LISTS);

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
      open: () => this.#places.acquire(accountId),
      close: () => this.#places.release(accountId),
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
