import { CutAnswer, type StreamedBody } from '../http/streamedBody.ts';
import { TextPieces } from '../http/textPieces.ts';
import type { Steps, WorkTurns } from '../lib/workTurns.ts';
import { explanationJson } from './explainJson.ts';
import type { Explanation } from './explanation.ts';

/** Bytes of a piece, and parts of it that are made between two looks at the clock. */
const PIECE_BYTES = 64 * 1024;
const PARTS_PER_STEP = 64;
/** What a reader may take for one piece of an answer, and for all of it. */
const READ_LIMITS_MS = { piece: 15_000, whole: 60_000 };

/** What is written, and what is given back when it was read. */
export interface OpenAnswer {
  readonly explanation: Explanation;
  readonly meta: object;
  close(): void;
}

/** An explanation as JSON that is made while it is read. What fails before it begins has a status of its own. */
export class ExplainBody implements StreamedBody {
  readonly bytes = null;
  readonly stallLimitMs = READ_LIMITS_MS.piece;
  readonly #source: () => Promise<OpenAnswer>;
  readonly #turns: WorkTurns<string | number>;
  readonly #accountId: number;
  readonly #json = new TextPieces();
  #opened: {
    readonly answer: OpenAnswer;
    readonly parts: Iterator<string>;
    readonly untilMs: number;
  } | null = null;

  constructor(source: () => Promise<OpenAnswer>, turns: WorkTurns<string | number>, accountId: number) {
    this.#source = source;
    this.#turns = turns;
    this.#accountId = accountId;
  }

  async open(): Promise<void> {
    const answer = await this.#source();
    const parts = explanationJson(answer.explanation, answer.meta);
    this.#opened = { answer, parts, untilMs: performance.now() + READ_LIMITS_MS.whole };
  }

  async next(take: (piece: Buffer) => void): Promise<boolean> {
    if (this.#opened === null) return false;
    const { parts, untilMs } = this.#opened;
    if (performance.now() > untilMs) throw new CutAnswer('the reader takes too long');
    const isLast = await this.#turns.run(this.#accountId, addPiece(parts, this.#json));
    while (!this.#json.isEmpty) take(this.#json.shift());
    return !isLast;
  }

  close(): void {
    this.#opened?.answer.close();
  }
}

/** Adds so many parts as make a piece; true when there are no more. */
function* addPiece(parts: Iterator<string>, json: TextPieces): Steps<boolean> {
  const untilBytes = json.bytes + PIECE_BYTES;
  for (let n = 1; json.bytes < untilBytes; n++) {
    const part = parts.next();
    if (part.done === true) return true;
    json.add(part.value);
    if (n % PARTS_PER_STEP === 0) yield;
  }
  return false;
}
