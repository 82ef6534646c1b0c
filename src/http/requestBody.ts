import type { IncomingMessage } from 'node:http';
import { invariant } from '../lib/errors.ts';
import { Overloaded } from '../lib/fairSemaphore.ts';
import {
  BODY_INVALID,
  fail,
  type JsonError,
  MAX_JSON_VALUES,
  ok,
  parseJson,
  type Result,
} from '../lib/result.ts';
import type { WorkTurns } from '../lib/workTurns.ts';
import { type Answer, errorAnswer, validationAnswer } from './answer.ts';
import { isEncoded, plainLength, readBody, UnreadableBody } from './readBody.ts';
import type { RequestBody, Route } from './route.ts';

export interface BodyPorts {
  readonly bodies: BodyBudget;
  readonly turns: WorkTurns<BodyOwner>;
}

/** Larger ones are parsed one in a turn of the event loop, in turn by their owners: JSON.parse cannot be interrupted. */
const INLINE_BYTES = 16 * 1024;

/**
 * The answer that `answer` makes of the body (null when the route takes none), or an error when the route does not take
 * such a body. The body's bytes are released when the answer has settled. Rejects as BodyBudget.read does.
 */
export async function withBody(
  { bodies, turns }: BodyPorts,
  request: IncomingMessage,
  owner: BodyOwner,
  { maxBodyBytes, takesPieces, takesPlainOnly }: Route,
  answer: (body: RequestBody | null) => Answer | Promise<Answer>,
): Promise<Answer> {
  if (maxBodyBytes === undefined) return answer(null);
  if (takesPlainOnly === true && isEncoded(request)) return errorAnswer('BAD_REQUEST', PLAIN_ONLY_REFUSAL);
  const { pieces, release } = await bodies.read(request, owner, maxBodyBytes);
  try {
    const isJson = JSON_TYPE.test(request.headers['content-type'] ?? '');
    const json = isJson && takesPieces !== true ? await readJson(turns, owner, pieces) : null;
    return await answer({ pieces, isJson, json });
  } finally {
    release();
  }
}

const PLAIN_ONLY_REFUSAL = 'the body of this request must not be compressed';

/** application/json and every +json (RFC 6839 section 3.1), such as application/geo+json; with or without parameters. */
const JSON_TYPE = /^(?:application\/json|[^\s;/]+\/[^\s;/]+\+json)\s*(?:;|$)/i;

function readJson(
  turns: BodyPorts['turns'],
  owner: BodyOwner,
  pieces: readonly Buffer[],
): Result<unknown, JsonError> | Promise<Result<unknown, JsonError>> {
  const [only = Buffer.alloc(0)] = pieces;
  if (pieces.length <= 1 && only.length <= INLINE_BYTES) return parseJson(only);
  return turns.once(owner, () => parseJson(Buffer.concat(pieces)));
}

/** The JSON of a body, or the answer to what is none. */
export function jsonBody(body: RequestBody | null): Result<unknown, Answer> {
  if (body?.json?.ok === true) return ok(body.json.value);
  return fail(body?.json?.ok === false ? jsonErrorAnswer(body.json.error) : notJsonAnswer(body));
}

/** The answer to a body that does not say that it is JSON, or to none. */
export function notJsonAnswer(body: RequestBody | null): Answer {
  const isThere = body !== null && body.pieces.length > 0;
  return invalidBody(
    isThere ? 'the body must say that it is JSON, by Content-Type: application/json' : NO_OBJECT,
  );
}

function jsonErrorAnswer(error: JsonError): Answer {
  switch (error) {
    case 'too_many_values':
      return errorAnswer('PAYLOAD_TOO_LARGE', TOO_MANY_VALUES);
    case 'too_deep':
      return invalidBody('the body is nested deeper than 64 levels');
    case 'not_json':
      return invalidBody(NO_OBJECT);
  }
}

const TOO_MANY_VALUES = `the body holds more than ${MAX_JSON_VALUES} values and names`;
const NO_OBJECT = BODY_INVALID.message;

function invalidBody(message: string): Answer {
  return validationAnswer([{ ...BODY_INVALID, message }]);
}

const KB = 1024;
const MB = 1024 * KB;

/** Bodies up to this size have a budget of their own, so none of them ever waits behind a large one. */
const SMALL_BYTES = 64 * KB;
const SMALL = { bytes: 64 * MB, bytesPerKey: 16 * MB, waitingPerKey: 1_000 };
/** A share takes two of the largest bodies that there are. */
const LARGE = { bytes: 256 * MB, bytesPerKey: 64 * MB, waitingPerKey: 200 };
/** Shorter than the time limit of a request, so that a client that waits still gets the reason. */
const WAIT_LIMIT_MS = 45_000;

/** Whose share a body is counted against: an account, or the network of a caller who is not known. */
export type BodyOwner = number | string;

/** A body in memory. `release` says that nobody looks at it any more. */
interface HeldBody {
  readonly pieces: readonly Buffer[];
  release(): void;
}

/**
 * Reads bodies within one budget of bytes for the pod and one for each caller. Beyond the budget, connections are not
 * read, so bodies wait with their senders. The bytes are returned when the body is released, or when reading ends
 * early: the client hangs up, is too slow, or sends something invalid.
 */
export class BodyBudget {
  readonly #small = new ByteBudget<BodyOwner>(SMALL);
  readonly #large = new ByteBudget<BodyOwner>(LARGE);

  /** Held at a time, of all callers together. */
  get heldBytes(): number {
    return this.#small.heldBytes + this.#large.heldBytes;
  }

  /** Bodies that wait for room. */
  get waiting(): number {
    return this.#small.waiting + this.#large.waiting;
  }

  /** Rejects like readBody, and with Overloaded when the bytes were not free in time. */
  async read(request: IncomingMessage, owner: BodyOwner, maxBytes: number): Promise<HeldBody> {
    const held: Reservation[] = [];
    const release = (): void => {
      for (const reservation of held) reservation.release();
    };
    const take = async (budget: ByteBudget<BodyOwner>, bytes: number): Promise<void> => {
      held.push(await reserve(budget, owner, bytes, request));
    };
    try {
      const freeBytes = Math.min(SMALL_BYTES, maxBytes);
      await take(this.#small, Math.min(plainLength(request) ?? freeBytes, freeBytes));
      const more = (bytes: number) => take(this.#large, bytes);
      const pieces = await readBody(request, { maxBytes, freeBytes, more });
      held[1]?.keep(pieces.reduce((sum, { length }) => sum + length, 0));
      return { pieces, release };
    } catch (error) {
      release();
      request.resume(); // the connection goes on
      throw error;
    }
  }
}

async function reserve(
  budget: ByteBudget<BodyOwner>,
  owner: BodyOwner,
  bytes: number,
  request: IncomingMessage,
): Promise<Reservation> {
  const waiting = new AbortController();
  const giveUp = (): void => waiting.abort(new UnreadableBody(400, 'the client gave up'));
  const timer = setTimeout(
    () => waiting.abort(new Overloaded('too many bodies are being read')),
    WAIT_LIMIT_MS,
  );
  // A request that has arrived as a whole closes in any case, even if its client waits for the answer.
  if (!request.complete) request.once('close', giveUp);
  try {
    return await budget.reserve(owner, bytes, waiting.signal);
  } finally {
    clearTimeout(timer);
    request.off('close', giveUp);
  }
}

interface ByteLimits {
  /** Bytes that may be reserved at a time, by all keys together. */
  readonly bytes: number;
  /** The same for one key; also the most that one reservation may ask for. */
  readonly bytesPerKey: number;
  /** Reservations of one key that may wait. */
  readonly waitingPerKey: number;
}

interface Waiting {
  readonly bytes: number;
  readonly resume: () => void;
}

interface Share {
  held: number;
  readonly waiting: Waiting[];
}

/** Bytes that are reserved until they are given back. */
export class Reservation {
  #bytes: number;
  readonly #giveBack: (bytes: number) => void;

  constructor(bytes: number, giveBack: (bytes: number) => void) {
    this.#bytes = bytes;
    this.#giveBack = giveBack;
  }

  /** Gives back all but `bytes`: that many turned out to be enough. */
  keep(bytes: number): void {
    const surplus = this.#bytes - bytes;
    if (surplus <= 0) return;
    this.#bytes = bytes;
    this.#giveBack(surplus);
  }

  /** Gives all of it back. A second call does nothing. */
  release(): void {
    this.keep(0);
  }
}

/**
 * A limit on the bytes held at a time, fair by key (an account, an address). Free bytes go to the next key in turn, and
 * no key has more than its share. A reservation gets all its bytes at once. None holds a part while it waits for the
 * rest, so two can never wait for each other.
 */
export class ByteBudget<Key> {
  readonly #limits: ByteLimits;
  readonly #shares = new Map<Key, Share>();
  /** The keys that wait, in the order of their turns. */
  readonly #turns = new Set<Key>();
  #held = 0;

  constructor(limits: ByteLimits) {
    this.#limits = limits;
  }

  /** Of all keys together. */
  get heldBytes(): number {
    return this.#held;
  }

  get waiting(): number {
    let waiting = 0;
    for (const key of this.#turns) waiting += this.#shares.get(key)?.waiting.length ?? 0;
    return waiting;
  }

  /**
   * Reserves this many bytes as soon as they are free. Rejects with Overloaded when too many reservations of this key
   * wait already, and with the signal's reason when the signal aborts first.
   */
  reserve(key: Key, bytes: number, signal: AbortSignal): Promise<Reservation> {
    invariant(bytes <= this.#limits.bytesPerKey, 'more than the share of a key can never be reserved');
    if (signal.aborted) return Promise.reject(signal.reason as Error);
    const share = this.#shares.get(key) ?? { held: 0, waiting: [] };
    if (share.waiting.length >= this.#limits.waitingPerKey)
      return Promise.reject(new Overloaded('too much waits already'));
    this.#shares.set(key, share);
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        share.waiting.splice(share.waiting.indexOf(waiting), 1);
        this.#forgetIdle(key, share);
        reject(signal.reason as Error);
        this.#grant(); // others may have waited behind this one
      };
      const waiting: Waiting = {
        bytes,
        resume: () => {
          signal.removeEventListener('abort', giveUp);
          resolve(new Reservation(bytes, (given) => this.#giveBack(key, share, given)));
        },
      };
      signal.addEventListener('abort', giveUp, { once: true });
      share.waiting.push(waiting);
      this.#turns.add(key);
      this.#grant();
    });
  }

  /**
   * Grants reservations in turn. If one does not fit into the free bytes of all keys, the others wait behind it:
   * otherwise small ones could take the bytes every time. If it does not fit into the share of its own key, the others
   * go on.
   */
  #grant(): void {
    for (const key of this.#turns) {
      const share = this.#shares.get(key) as Share;
      const [next] = share.waiting as [Waiting];
      if (share.held + next.bytes > this.#limits.bytesPerKey) continue;
      if (this.#held + next.bytes > this.#limits.bytes) return;
      share.waiting.shift();
      share.held += next.bytes;
      this.#held += next.bytes;
      this.#turns.delete(key);
      if (share.waiting.length > 0) this.#turns.add(key); // at the end, where this loop comes again
      next.resume();
    }
  }

  #giveBack(key: Key, share: Share, bytes: number): void {
    share.held -= bytes;
    this.#held -= bytes;
    this.#forgetIdle(key, share);
    this.#grant();
  }

  #forgetIdle(key: Key, share: Share): void {
    if (share.waiting.length > 0) return;
    this.#turns.delete(key);
    if (share.held === 0) this.#shares.delete(key);
  }
}
