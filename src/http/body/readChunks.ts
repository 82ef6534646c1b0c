import type { IncomingMessage } from 'node:http';
import type { Readable } from 'node:stream';
import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';

/** A body that cannot be taken, with the status that says why. */
class BodyError extends Error {
  override name = 'BodyError';
  readonly status: 400 | 413 | 415;

  constructor(status: 400 | 413 | 415, message: string) {
    super(message);
    this.status = status;
  }
}

/**
 * Passes a body on as it arrives, decompressed, and keeps nothing of it. The next chunk is read when the promise of
 * `take` has settled. `maxBytes` counts decompressed bytes. Rejects with an error that has a `status`: 413 for a larger
 * body, 415 for an unknown encoding, 400 for one that cannot be decompressed and for a client that gives up. A rejected
 * body is first read to its end and dropped, because a client that is still sending would not see the answer.
 */
export async function readChunks(
  request: IncomingMessage,
  maxBytes: number,
  take: (piece: Buffer) => Promise<void> | undefined,
): Promise<void> {
  if (!hasBody(request)) return;
  let source: Readable = request;
  try {
    if (plainLength(request) > maxBytes) throw tooLarge();
    source = inflated(request);
    let bytes = 0;
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
    await readAway(request);
    throw error;
  }
}

/** Whether a body is small as it comes: it says its length and is not encoded. */
export function isSmallBody(request: IncomingMessage, maxBytes: number): boolean {
  return !hasBody(request) || plainLength(request) <= maxBytes;
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
}

/** NaN for a body that is encoded or comes in chunks. */
function plainLength({ headers }: IncomingMessage): number {
  return headers['content-encoding'] === undefined ? Number(headers['content-length']) : Number.NaN;
}

function inflated(request: IncomingMessage): Readable {
  const encoding = request.headers['content-encoding']?.toLowerCase() ?? 'identity';
  if (encoding === 'identity') return request;
  const decoder = DECODERS[encoding]?.();
  if (decoder === undefined) throw new BodyError(415, 'the encoding of the body is not known');
  request.once('close', () => {
    if (!request.readableEnded) decoder.destroy(gaveUp());
  });
  return request.pipe(decoder);
}

const DECODERS: Readonly<
  Record<string, () => ReturnType<typeof createGunzip | typeof createBrotliDecompress>>
> = {
  gzip: () => createGunzip(),
  deflate: () => createInflate(),
  br: () => createBrotliDecompress(),
};

const tooLarge = () => new BodyError(413, 'the body is too large');
const gaveUp = () => new BodyError(400, 'the client gave up');

function eachPiece(stream: Readable, take: (piece: Buffer) => Promise<void> | undefined): Promise<void> {
  return new Promise((resolve, reject) => {
    /** Of the last piece: a stream may end while it is paused for it. */
    let taken: Promise<void> | undefined;
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
    stream.on('error', () => giveUp(new BodyError(400, 'the body cannot be read')));
    stream.once('close', () => {
      if (!stream.readableEnded) giveUp(gaveUp());
    });
    if (stream.destroyed) giveUp(gaveUp()); // there would be no event
  });
}

function readAway(request: IncomingMessage): Promise<void> {
  if (request.readableEnded || request.destroyed) return Promise.resolve();
  return new Promise((resolve) => {
    request.once('end', resolve);
    request.once('close', resolve);
    request.resume();
  });
}
