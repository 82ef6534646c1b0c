import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import { ByteBudget, Overloaded, type Reservation } from '../lib/fairSemaphore.ts';
import { type JsonError, parseJson } from '../lib/parseText.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import type { WorkTurns } from '../lib/workTurns.ts';
import { type Answer, errorAnswer, jsonErrorAnswer } from './answer.ts';
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
  return jsonErrorAnswer(isThere ? 'not_said' : 'not_json');
}

const KB = 1024;
const MB = 1024 * KB;

/** Bodies up to this size have a budget of their own, so none of them ever waits behind a large one. */
const SMALL_BYTES = 64 * KB;
const SMALL = { bytes: 64 * MB, bytesPerKey: 16 * MB, waitingPerKey: 1_000 };
/** A share has room for two of the largest possible bodies. */
const LARGE = { bytes: 256 * MB, bytesPerKey: 64 * MB, waitingPerKey: 200 };
/** Shorter than the time limit of a request, so that a client that waits still gets the reason. */
const WAIT_LIMIT_MS = 45_000;

/** Whose share a body is counted against: an account, or the network of a caller who is not known. */
export type BodyOwner = number | string;

/** A body in memory. `release` must be called when it is no longer used. */
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

/** A request whose body cannot be read; `status` says why, as errors of Express do. */
export class UnreadableBody extends Error {
  override name = 'UnreadableBody';
  readonly status: 400 | 413 | 415;

  constructor(status: UnreadableBody['status'], message: string) {
    super(message);
    this.status = status;
  }
}

/** What a body may need, and how it is asked for. */
export interface BodyRoom {
  /** The most that it may have, as sent and unpacked. */
  readonly maxBytes: number;
  /** The most that it may have without `more`. */
  readonly freeBytes: number;
  /**
   * Called at most once, before it has more than `freeBytes`, with all that it can come to. Nothing is read until it has
   * resolved.
   */
  more(bytes: number): Promise<void>;
}

/**
 * A whole body, decompressed, in blocks. Rejects like readPieces, and with the errors of `more`. A compressed body is
 * kept as it was sent until all of it is there, so one that never ends takes no more memory than its client has sent.
 */
export async function readBody(request: IncomingMessage, room: BodyRoom): Promise<readonly Buffer[]> {
  const { maxBytes, freeBytes } = room;
  const decoder = decoderOf(request); // an unknown encoding is an error of an empty body, too
  if (!hasBody(request)) return [];
  const { 'content-length': length } = request.headers;
  const sentBytes = length === undefined ? null : Number(length);
  if (sentBytes !== null && sentBytes > maxBytes) throw skipRest(request, tooLarge());
  let grantedBytes = freeBytes;
  const grant = async (bytes: number): Promise<void> => {
    await room.more(bytes).catch((error: Error) => {
      throw skipRest(request, error);
    });
    grantedBytes = maxBytes;
  };
  const keepIn = (blocks: ByteBlocks, largestBytes: number) => (piece: Buffer) => {
    if (blocks.length + piece.length <= grantedBytes) return blocks.add(piece);
    return grant(largestBytes).then(() => blocks.add(piece));
  };
  // For both forms at once: if bodies asked twice, two could each have what the other waits for.
  const largestBytes = (sentBytes ?? maxBytes) + (decoder === null ? 0 : maxBytes);
  // Before the first byte is read: what its client has sent waits in the sockets.
  if (sentBytes !== null && sentBytes > freeBytes) await grant(largestBytes);
  const sent = new ByteBlocks(sentBytes ?? freeBytes);
  await takePieces(request, request, maxBytes, keepIn(sent, largestBytes));
  if (decoder === null) return sent.pieces();
  const unpacked = new ByteBlocks(DECODED.chunkSize);
  const source = Readable.from(sent.pieces()).pipe(decoder());
  await takePieces(request, source, maxBytes, keepIn(unpacked, maxBytes));
  return unpacked.pieces();
}

/**
 * Passes a body on as it arrives, decompressed, and keeps nothing of it. The next piece is read when the promise of
 * `take` has settled. `maxBytes` counts decompressed bytes. Rejects with UnreadableBody: 413 for a larger body, 415 for
 * an unknown encoding, 400 for one that cannot be decompressed and for a client that gives up. The rest of a rejected
 * body is read and dropped, so that the connection can go on.
 */
export async function readPieces(request: IncomingMessage, maxBytes: number, take: Take): Promise<void> {
  if (!hasBody(request)) return;
  if ((plainLength(request) ?? 0) > maxBytes) throw skipRest(request, tooLarge());
  await takePieces(request, decompressed(request), maxBytes, take);
}

type Take = (piece: Buffer) => Promise<void> | undefined | void;

/** `source`: the request, or what decompresses it. */
async function takePieces(
  request: IncomingMessage,
  source: Readable,
  maxBytes: number,
  take: Take,
): Promise<void> {
  let bytes = 0;
  try {
    await eachPiece(source, (piece) => {
      bytes += piece.length;
      if (bytes > maxBytes) throw tooLarge();
      return take(piece);
    });
  } catch (error) {
    if (source !== request) {
      request.unpipe();
      source.destroy();
    }
    throw skipRest(request, error);
  }
}

/** Resolves when the client has sent all of a body that nobody reads, or has gone. */
export function restRead(request: IncomingMessage): Promise<void> {
  if (request.readableEnded || request.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    request.once('end', resolve).once('close', resolve);
    request.resume();
  });
}

/** Whether a body is small as it comes: it says its length and is not encoded. */
export function isSmallBody(request: IncomingMessage, maxBytes: number): boolean {
  return !hasBody(request) || (plainLength(request) ?? Number.POSITIVE_INFINITY) <= maxBytes;
}

export function isEncoded(request: IncomingMessage): boolean {
  return encodingOf(request) !== 'identity';
}

/** The length of a body; null when it is encoded or comes in chunks. */
export function plainLength(request: IncomingMessage): number | null {
  const length = request.headers['content-length'];
  return length === undefined || isEncoded(request) ? null : Number(length);
}

/** Of a request without one (RFC 9112 section 6.3) Node emits no event. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

function skipRest<E>(request: IncomingMessage, error: E): E {
  request.on('error', () => undefined); // it is over, whatever else happens to it
  request.resume();
  return error;
}

function encodingOf({ headers }: IncomingMessage): string {
  return (headers['content-encoding'] ?? 'identity').toLowerCase();
}

type Decoder = ReturnType<typeof createGunzip | typeof createInflate | typeof createBrotliDecompress>;

/** Unpacked at a time, in a thread: so much that few turns are needed, so little that other work gets its turn. */
const DECODED = { chunkSize: 64 * 1024 };

/** null: nothing to do. */
const DECODERS: ReadonlyMap<string, (() => Decoder) | null> = new Map<string, (() => Decoder) | null>([
  ['identity', null],
  ['gzip', () => createGunzip(DECODED)],
  ['deflate', () => createInflate(DECODED)],
  ['br', () => createBrotliDecompress(DECODED)],
]);

function decoderOf(request: IncomingMessage): (() => Decoder) | null {
  const decoder = DECODERS.get(encodingOf(request));
  if (decoder === undefined) {
    throw skipRest(request, new UnreadableBody(415, 'the encoding of the body is not known'));
  }
  return decoder;
}

function decompressed(request: IncomingMessage): Readable {
  const decoder = decoderOf(request)?.();
  if (decoder === undefined) return request;
  request.once('close', () => {
    if (!request.readableEnded) decoder.destroy(gaveUp());
  });
  return request.pipe(decoder);
}

const tooLarge = () => new UnreadableBody(413, 'the body is too large');
const gaveUp = () => new UnreadableBody(400, 'the client gave up');

function eachPiece(stream: Readable, take: Take): Promise<void> {
  return new Promise((resolve, reject) => {
    /** Of the last piece: a stream may end while it is paused for it. */
    let taken: Promise<void> | undefined | void;
    const giveUp = (error: unknown): void => {
      stream.off('data', onData);
      stream.pause();
      reject(error);
    };
    const onData = (piece: Buffer): void => {
      try {
        taken = take(piece);
        if (taken === undefined) return;
        stream.pause();
        taken.then(() => stream.resume(), giveUp);
      } catch (error) {
        giveUp(error);
      }
    };
    stream.on('data', onData);
    stream.once('end', () => resolve(taken));
    stream.on('error', () => giveUp(new UnreadableBody(400, 'the body cannot be decompressed')));
    stream.once('close', () => {
      if (!stream.readableEnded) giveUp(gaveUp());
    });
    if (stream.destroyed) giveUp(gaveUp()); // there would be no event
  });
}

const BLOCK_BYTES = 64 * 1024;

/**
 * Bytes in the order in which they came, in blocks of 64 KB. Keeping the chunks themselves would let the sender decide
 * on the memory: chunks of one byte take a hundred times their bytes. Joining all of them takes a millisecond or more
 * for each megabyte, and is not needed.
 */
class ByteBlocks {
  readonly #full: Buffer[] = [];
  #last: Buffer;
  #used = 0;

  /** `expectedBytes`: what is known of their number; a body of a few bytes takes no whole block. */
  constructor(expectedBytes: number) {
    this.#last = Buffer.allocUnsafeSlow(Math.min(expectedBytes, BLOCK_BYTES));
  }

  get length(): number {
    return this.#full.length * BLOCK_BYTES + this.#used;
  }

  add(piece: Buffer): void {
    for (let from = 0; from < piece.length; ) {
      if (this.#used === this.#last.length) this.#begin();
      const copied = piece.copy(this.#last, this.#used, from);
      this.#used += copied;
      from += copied;
    }
  }

  /** All of them; nothing is added afterwards. */
  pieces(): readonly Buffer[] {
    return this.#used === 0 ? this.#full : [...this.#full, this.#last.subarray(0, this.#used)];
  }

  #begin(): void {
    const before = this.#last;
    this.#last = Buffer.allocUnsafeSlow(BLOCK_BYTES);
    if (before.length === BLOCK_BYTES) {
      this.#full.push(before);
      this.#used = 0;
    } else this.#used = before.copy(this.#last, 0); // more came than was expected
  }
}
