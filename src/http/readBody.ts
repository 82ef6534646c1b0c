import { type Request, type Response, raw } from 'express';
import type { RequestBody } from './route.ts';

/**
 * Reads a whole body, decompressed, of at most `maxBytes`. Rejects with an error that carries `status` (413 when it
 * is larger, 400 when the client gives up, 415 for an unknown encoding).
 */
export async function readBody(request: Request, response: Response, maxBytes: number): Promise<RequestBody> {
  const lengthBytes = plainLength(request);
  const bytes =
    lengthBytes >= LARGE_BYTES && lengthBytes <= maxBytes
      ? await readLarge(request, lengthBytes)
      : await readAny(request, response, maxBytes);
  return { bytes, isJson: JSON_TYPE.test(request.headers['content-type'] ?? '') };
}

/** A body that is not encoded says its length, unless it comes in chunks (NaN). */
function plainLength({ headers }: Request): number {
  return headers['content-encoding'] === undefined ? Number(headers['content-length']) : Number.NaN;
}

const LARGE_BYTES = 1024 * 1024;

/**
 * A large body goes straight to its place, piece by piece as it comes. To join the pieces at the end, as the reader
 * of all other bodies does, would hold up everybody else for a millisecond per megabyte.
 */
function readLarge(request: Request, lengthBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    if (request.destroyed) reject(GIVEN_UP); // no event would tell
    const bytes = Buffer.allocUnsafeSlow(lengthBytes);
    let at = 0;
    request.on('data', (piece: Buffer) => {
      at += piece.copy(bytes, at);
    });
    request.once('end', () => resolve(bytes.subarray(0, at)));
    request.once('error', () => reject(GIVEN_UP));
    request.once('close', () => reject(GIVEN_UP));
  });
}

const GIVEN_UP = Object.assign(new Error('the client gave up'), { status: 400 });

function readAny(request: Request, response: Response, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    raw({ type: () => true, limit: maxBytes })(request, response, (error: unknown) => {
      if (error === undefined) resolve(Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0));
      else reject(error);
    });
  });
}

/** application/json and every +json (RFC 6839 section 3.1), such as application/geo+json; with or without parameters. */
const JSON_TYPE = /^(?:application\/json|[^\s;/]+\/[^\s;/]+\+json)\s*(?:;|$)/i;
