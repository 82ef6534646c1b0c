import type { IncomingMessage } from 'node:http';
import { Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';

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

/** A request whose body cannot be read; `status` says why, as errors of Express do. */
export class UnreadableBody extends Error {
  override name = 'UnreadableBody';
  readonly status: 400 | 413 | 415;

  constructor(status: UnreadableBody['status'], message: string) {
    super(message);
    this.status = status;
  }
}

/**
 * A whole body, decompressed, in blocks. Rejects with UnreadableBody: 413 when it is too large, 415 for an unknown
 * encoding, 400 when it cannot be decompressed or the client gives up; and with the errors of `more`. Only the
 * compressed bytes are kept until all have arrived, so a body that never ends takes no more memory than its client has
 * sent.
 */
export async function readBody(request: IncomingMessage, room: BodyRoom): Promise<readonly Buffer[]> {
  const decoder = DECODERS.get(encodingOf(request));
  if (decoder === undefined) throw skipRest(request, new UnreadableBody(415, 'the encoding is not known'));
  if (!hasBody(request)) return [];
  const declared = declaredBytes(request);
  if (declared !== null && declared > room.maxBytes) throw skipRest(request, TOO_LARGE);
  if (request.destroyed) throw GAVE_UP; // there would be no event
  if (decoder === null) return (await receive(request, room, declared ?? room.maxBytes)).pieces();
  // A body that asks for more bytes while it is received also asks for those of its decompressed form. If it asked
  // twice, two bodies could each have what the other waits for.
  const sent = await receive(request, room, (declared ?? room.maxBytes) + room.maxBytes);
  return unpack(
    decoder(),
    sent.pieces(),
    sent.length > room.freeBytes ? { ...room, freeBytes: room.maxBytes } : room,
  );
}

/** The bytes that a body says it has; null when it comes in chunks, and when there is none. */
export function declaredBytes({ headers }: IncomingMessage): number | null {
  const length = headers['content-length'];
  return length === undefined ? null : Number(length);
}

export function isEncoded(request: IncomingMessage): boolean {
  return encodingOf(request) !== 'identity';
}

function encodingOf({ headers }: IncomingMessage): string {
  return (headers['content-encoding'] ?? 'identity').toLowerCase();
}

type Decoder = ReturnType<typeof createGunzip | typeof createInflate | typeof createBrotliDecompress>;

/** null: nothing to do. */
const DECODERS: ReadonlyMap<string, (() => Decoder) | null> = new Map<string, (() => Decoder) | null>([
  ['identity', null],
  ['gzip', () => createGunzip({ chunkSize: DECODED_BYTES })],
  ['deflate', () => createInflate({ chunkSize: DECODED_BYTES })],
  ['br', () => createBrotliDecompress({ chunkSize: DECODED_BYTES })],
]);

/** Unpacked at a time, in a thread: so much that few turns are needed, so little that other work gets its turn. */
const DECODED_BYTES = 64 * 1024;

/** Reads on without keeping anything, so that the connection can go on. */
function skipRest(request: IncomingMessage, error: Error): Error {
  request.resume();
  return error;
}

/** Of a request without one (RFC 9112 section 6.3) Node emits no event. */
function hasBody({ headers }: IncomingMessage): boolean {
  return headers['content-length'] !== undefined || headers['transfer-encoding'] !== undefined;
}

/** `largestBytes`: what the body can come to. */
async function receive(request: IncomingMessage, room: BodyRoom, largestBytes: number): Promise<ByteBlocks> {
  const declared = declaredBytes(request);
  const blocks = new ByteBlocks(declared ?? room.freeBytes);
  if (declared === null || declared <= room.freeBytes) return collect(request, blocks, room, largestBytes);
  // Before the first byte is read: what its client has sent waits in the sockets.
  await room.more(largestBytes).catch((error: Error) => Promise.reject(skipRest(request, error)));
  if (request.destroyed) throw GAVE_UP;
  return collect(request, blocks, { ...room, freeBytes: room.maxBytes }, largestBytes);
}

function collect(
  request: IncomingMessage,
  blocks: ByteBlocks,
  room: BodyRoom,
  largestBytes: number,
): Promise<ByteBlocks> {
  let grantedBytes = room.freeBytes;
  return new Promise((resolve, reject) => {
    const finish = (error?: Error): void => {
      request.off('data', add).off('end', finish).off('error', giveUp).off('close', giveUp);
      if (error === undefined) resolve(blocks);
      else {
        request.on('error', () => undefined); // it is over, whatever else happens to it
        reject(skipRest(request, error));
      }
    };
    const giveUp = (): void => finish(GAVE_UP);
    const add = (piece: Buffer): void => {
      const length = blocks.length + piece.length;
      if (length > room.maxBytes) finish(TOO_LARGE);
      else if (length <= grantedBytes) blocks.add(piece);
      else {
        request.pause();
        void room.more(largestBytes).then(() => {
          grantedBytes = room.maxBytes;
          blocks.add(piece);
          request.resume();
        }, finish);
      }
    };
    request.on('data', add).once('end', finish).once('error', giveUp).once('close', giveUp);
  });
}

async function unpack(decoder: Decoder, sent: readonly Buffer[], room: BodyRoom): Promise<readonly Buffer[]> {
  let grantedBytes = room.freeBytes;
  const unpacked = new ByteBlocks(DECODED_BYTES);
  Readable.from(sent).pipe(decoder);
  try {
    for await (const piece of decoder as AsyncIterable<Buffer>) {
      const length = unpacked.length + piece.length;
      if (length > room.maxBytes) throw TOO_LARGE;
      if (length > grantedBytes) {
        await room.more(room.maxBytes);
        grantedBytes = room.maxBytes;
      }
      unpacked.add(piece);
    }
  } catch (cause) {
    if (isZlibError(cause)) throw new UnreadableBody(400, 'the body is not in its encoding');
    throw cause;
  }
  return unpacked.pieces();
}

function isZlibError(cause: unknown): boolean {
  return cause instanceof Error && 'errno' in cause;
}

const TOO_LARGE = new UnreadableBody(413, 'the body is too large');
const GAVE_UP = new UnreadableBody(400, 'the client gave up');

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
