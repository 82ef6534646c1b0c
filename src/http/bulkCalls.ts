import { invariant } from '../lib/errors.ts';
import { FairSemaphore } from '../lib/fairSemaphore.ts';
import { isJsonObject, isMissing, type JsonObject } from '../lib/parseText.ts';
import { BODY_INVALID, type FieldError, fail, ok, type Result } from '../lib/result.ts';
import { formatDuration, OutOfTime } from '../lib/time.ts';
import { type AtOnce, ProcessorBudget, type Steps, TooMuchWork, type WorkTurns } from '../lib/workTurns.ts';
import type { Answer, ErrorCode, StreamedBody } from './answer.ts';
import { CutAnswer, ERRORS, NotBegun, validationAnswer } from './answer.ts';
import type { RequestBodyDescription } from './openapi/operation.ts';
import { choice, list, nullable, number, ref, type Schema, shapeOf, text } from './openapi/schema.ts';
import { jsonBody } from './requestBody.ts';
import type { RequestBody } from './route.ts';

/** Devices that the points of a batch may ask for together. */
export const BATCH_DEVICES_MAX = 10_000;
/** Areas that are listed for one point. */
export const CONTAINING_MAX = 200;
/** Processor time of one batch: a thousand points among two thousand areas that all contain them take a quarter of it. */
const BULK_WORK_MS = 8_000;
export const TOO_MUCH_BULK_WORK = {
  field: 'points',
  code: 'LIMIT_REACHED',
  message: `the points together take more than ${formatDuration(BULK_WORK_MS)} of processor time; send them in several calls`,
} as const satisfies FieldError;

/** Batches that run at a time, and that wait. Two of an account run at a time. */
const RUNNING = { running: 64, runningPerKey: 2, waiting: 2_000, waitingPerKey: 50 };
/** A batch that takes longer, its turns included, ends as a 503. Less than what an answer may take (answerRoute). */
const DEADLINE_MS = 12_000;
/** A batch that waits for others of its account for longer is a 503. */
const WAIT_LIMIT_MS = 15_000;
/** What a reader may take for one piece of an answer, and for all of it. */
const READ_LIMITS_MS = { piece: 15_000, whole: 60_000 };

/** Runs the batches of all accounts in work turns, a few of each account at a time, and none without end. */
export class BulkCalls {
  readonly #turns: WorkTurns<string | number>;
  readonly #workMs: number;
  readonly #running = new FairSemaphore<number>(RUNNING);

  /** `workMs`: processor time of one batch. */
  constructor(turns: WorkTurns<string | number>, workMs = BULK_WORK_MS) {
    this.#turns = turns;
    this.#workMs = workMs;
  }

  /** What `steps` returns. Rejects with Overloaded, OutOfTime or TooMuchWork. */
  run<T>(accountId: number, steps: () => Steps<T>): Promise<T> {
    return this.#running.run(accountId, () => this.#measure(accountId, steps()));
  }

  /**
   * A 200 with the JSON that `write` adds. The batch counts as running until its reader has taken the answer, so unread
   * answers of an account take the memory of two.
   */
  answer(accountId: number, write: (json: TextPieces) => Steps<void>): Answer {
    return { status: 200, body: this.#body(accountId, write, validationAnswer([TOO_MUCH_BULK_WORK])) };
  }

  /**
   * The same with bytes and headers of their own. `make` may throw NotBegun, for another answer. `tooMuchWork`: the answer
   * where the bytes take too much processor time.
   */
  file(
    accountId: number,
    make: () => Steps<Buffer>,
    headers: NonNullable<Answer['headers']>,
    tooMuchWork: Answer,
  ): Answer {
    function* write(pieces: TextPieces): Steps<void> {
      pieces.addBytes(yield* make());
    }
    return { status: 200, headers, body: this.#body(accountId, write, tooMuchWork) };
  }

  #body(accountId: number, write: (json: TextPieces) => Steps<void>, tooMuchWork: Answer): StreamedBody {
    const json = new TextPieces();
    let readUntilMs = 0;
    let isMade = false;
    return {
      // For HEAD the body is never made, so its length is not known.
      get bytes() {
        return isMade ? json.bytes : null;
      },
      stallLimitMs: READ_LIMITS_MS.piece,
      open: async () => {
        await this.#running.acquireWithin(accountId, WAIT_LIMIT_MS);
        try {
          await this.#measure(accountId, write(json));
        } catch (error) {
          this.#running.release(accountId);
          if (error instanceof TooMuchWork) throw new NotBegun(tooMuchWork);
          throw error;
        }
        isMade = true;
        readUntilMs = performance.now() + READ_LIMITS_MS.whole;
      },
      next: (take) => {
        if (performance.now() > readUntilMs)
          return Promise.reject(new CutAnswer('the reader takes too long'));
        // Sending is work of a turn too: the system takes ten megabytes at once, which holds up everybody else.
        return this.#turns.once(accountId, () => {
          take(json.shift());
          return !json.isEmpty;
        });
      },
      close: () => this.#running.release(accountId),
    };
  }

  #measure<T>(accountId: number, steps: Steps<T>): Promise<T> {
    const untilMs = performance.now() + DEADLINE_MS;
    const budget = new ProcessorBudget(this.#workMs, () => {
      if (performance.now() > untilMs) throw new OutOfTime('the batch takes too long');
      return false;
    });
    return this.#turns.run(accountId, budget.spend(steps));
  }
}

/** What a route needs to answer in turns. */
export interface InTurnsPorts {
  readonly bulkCalls: BulkCalls;
  /** By account. */
  readonly atOnce: Pick<AtOnce<string | number>, 'run'>;
}

/** Nearly always the first step is the only one. Others take turns with other long computations. */
export function answerInTurns(
  { bulkCalls, atOnce }: InTurnsPorts,
  accountId: number,
  steps: Steps<Answer>,
): Answer | Promise<Answer> {
  const goOn = (step: IteratorResult<undefined, Answer>): Answer | Promise<Answer> => {
    if (step.done === true) return step.value;
    // When its turn never comes, what the first step has begun is still undone.
    return bulkCalls.run(accountId, () => steps).finally(() => steps.return(undefined as never));
  };
  const first = atOnce.run(accountId, () => steps.next());
  return first instanceof Promise ? first.then(goOn) : goOn(first);
}

const PIECE_BYTES = 64 * 1024;
/** The most bytes that a UTF-16 code unit takes in UTF-8. */
const UTF8_PER_CHAR = 3;
const EMPTY = Buffer.alloc(0);

/**
 * A long text that is made part by part and kept as pieces of bytes. It is never joined as a whole, and its parts are
 * not kept as text, which the garbage collector would copy while more are added.
 */
export class TextPieces {
  readonly #pieces: Buffer[] = [];
  #open = EMPTY;
  /** Bytes of the open piece that are written. */
  #used = 0;
  #closedBytes = 0;
  #next = 0;

  add(text: string): void {
    this.#reserve(text.length * UTF8_PER_CHAR);
    this.#used += this.#open.write(text, this.#used);
  }

  /** Adds characters of ASCII. Of short texts nothing has to be joined first, and no call leaves JavaScript. */
  addAscii(text: string): void {
    this.#reserve(text.length);
    const open = this.#open;
    let at = this.#used;
    for (let n = 0; n < text.length; n++) open[at++] = text.charCodeAt(n);
    this.#used = at;
  }

  /** Adds bytes that nobody changes any more, as a piece of their own. */
  addBytes(bytes: Buffer): void {
    this.#close();
    this.#pieces.push(bytes);
    this.#closedBytes += bytes.length;
  }

  /** Of the whole text, in UTF-8. */
  get bytes(): number {
    return this.#closedBytes + this.#used;
  }

  get isEmpty(): boolean {
    return this.#used === 0 && this.#next === this.#pieces.length;
  }

  /** Removes the first piece and returns it. */
  shift(): Buffer {
    invariant(!this.isEmpty, 'a piece is left');
    if (this.#next === this.#pieces.length) this.#close();
    const piece = this.#pieces[this.#next] as Buffer;
    this.#pieces[this.#next++] = EMPTY;
    return piece;
  }

  #reserve(bytes: number): void {
    if (this.#used + bytes <= this.#open.length) return;
    this.#close();
    this.#open = Buffer.allocUnsafeSlow(Math.max(PIECE_BYTES, bytes));
  }

  #close(): void {
    if (this.#used === 0) return;
    this.#pieces.push(this.#open.subarray(0, this.#used));
    this.#closedBytes += this.#used;
    this.#open = EMPTY;
    this.#used = 0;
  }
}

export const BATCH_LIMITS = { points: 1_000, refMaxChars: 100 } as const;

export const BATCH_ERRORS = {
  pointsRequired: { field: 'points', code: 'REQUIRED', message: 'points is required: a list of points' },
  pointsInvalid: { field: 'points', code: 'INVALID', message: 'points must be a list of at least one point' },
  tooManyPoints: {
    field: 'points',
    code: 'LIMIT_REACHED',
    message: `points has more than ${BATCH_LIMITS.points} points; send them in several calls`,
  },
} as const satisfies Readonly<Record<string, FieldError>>;

export const BATCH_BODY: Pick<RequestBodyDescription, 'fieldError' | 'errorExamples'> = {
  fieldError: ref('BatchFieldError'),
  errorExamples: {
    'no points': [BATCH_ERRORS.pointsRequired],
    'too many points': [BATCH_ERRORS.tooManyPoints],
    'too much work': [TOO_MUCH_BULK_WORK],
  },
};

const REF_SENT: Schema = {
  oneOf: [text(undefined, { maxLength: BATCH_LIMITS.refMaxChars }), number()],
  description: 'Your own name of the point; its item repeats it.',
};
const REF: Schema = { oneOf: [nullable(text()), number()], description: 'As it was sent; null without one.' };

/**
 * A batch whose points have these optional fields, and which may have others beside them. A point that is out of range is
 * an error of its own item.
 */
export function batchInput(
  optional: Readonly<Record<string, Schema>> = {},
  beside: Readonly<Record<string, Schema>> = {},
): Schema {
  const point = { ref: REF_SENT, lat: number('Degrees north.'), lng: number('Degrees east.'), ...optional };
  const points = shapeOf<Record<string, unknown>>(point, { optional: ['ref', ...Object.keys(optional)] });
  return shapeOf<Record<string, unknown>>(
    { points: list(points, { minItems: 1, maxItems: BATCH_LIMITS.points }), ...beside },
    { optional: Object.keys(beside) },
  );
}

/** What a batch answers for one point. */
export function batchItem(result: string, schema: Schema, codes: readonly ErrorCode[]): Schema {
  const error = shapeOf<{ code: string; message: string }>({ code: choice(codes), message: text() });
  return {
    ...shapeOf<Record<string, unknown>>(
      { ref: REF, [result]: schema, error },
      { optional: [result, 'error'] },
    ),
    description: `Has \`${result}\`, or \`error\` when this point cannot be answered.`,
  };
}

/** What is wrong with a batch as a whole. */
export const BATCH_FIELD_ERROR = shapeOf<FieldError>(
  {
    field: nullable(choice(['points'], 'null: the body as a whole.')),
    code: choice(['REQUIRED', 'INVALID', 'LIMIT_REACHED', 'INVALID_BODY']),
    message: text(),
  },
  { description: 'What is wrong with a batch as a whole.' },
);

export const OUT_OF_RANGE = { ref: 'stop 18', lat: 95, lng: 12.5 };

export const READ_PROMPTLY =
  'An account has two batches at a time on a pod, until their answers are read; further ones wait up to 15 seconds, then they are a 503. Each has eight seconds of computing. An answer must be read within a minute.';

const NO_OBJECT = 'a point must be a JSON object';
const REF_INVALID = `ref must be text of at most ${BATCH_LIMITS.refMaxChars} characters, or a number`;

/** A point of a batch as it was sent, with the JSON text of its `ref`; or the JSON text of what is wrong with it. */
export type BatchPoint =
  | { readonly refJson: string; readonly sent: JsonObject }
  | { readonly refJson: string; readonly errorJson: string };

/**
 * The points of a batch, in the order sent. A body without a list of 1 to 1 000 points is a 422; an element that is
 * not a point, or whose `ref` cannot be repeated, is an error of that element only.
 */
export function readBatchPoints(body: RequestBody | null): Result<readonly BatchPoint[], Answer> {
  const json = jsonBody(body);
  if (!json.ok) return json;
  if (!isJsonObject(json.value)) return fail(validationAnswer([BODY_INVALID]));
  const { points } = json.value;
  if (isMissing(points)) return fail(validationAnswer([BATCH_ERRORS.pointsRequired]));
  if (!Array.isArray(points) || points.length === 0) {
    return fail(validationAnswer([BATCH_ERRORS.pointsInvalid]));
  }
  if (points.length > BATCH_LIMITS.points) return fail(validationAnswer([BATCH_ERRORS.tooManyPoints]));
  return ok(points.map(readPoint));
}

function readPoint(sent: unknown): BatchPoint {
  if (!isJsonObject(sent)) return { refJson: 'null', errorJson: errorJson('BAD_REQUEST', NO_OBJECT) };
  const { ref } = sent;
  if (isMissing(ref)) return { refJson: 'null', sent };
  const isRef =
    (typeof ref === 'number' && Number.isFinite(ref)) ||
    (typeof ref === 'string' && ref.length <= BATCH_LIMITS.refMaxChars);
  return isRef
    ? { refJson: JSON.stringify(ref), sent }
    : { refJson: 'null', errorJson: errorJson('BAD_REQUEST', REF_INVALID) };
}

/** The JSON text of an error of one point: code and message, as a single call answers them. */
export function errorJson(code: ErrorCode, message: string = ERRORS[code][1]): string {
  return JSON.stringify({ code, message });
}
