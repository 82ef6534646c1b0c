import { type Request, type Response, raw } from 'express';
import type { RequestBody } from './route.ts';

/**
 * Reads a whole body, decompressed, of at most `maxBytes`. Rejects with an error that carries `status` (413 when it
 * is larger, 400 when the client gives up, 415 for an unknown encoding).
 */
export async function readBody(request: Request, response: Response, maxBytes: number): Promise<RequestBody> {
  const lengthBytes = plainLength(request);
  const pieces =
    lengthBytes >= LARGE_BYTES && lengthBytes <= maxBytes
      ? await readPieces(request)
      : [await readWhole(request, response, maxBytes)];
  return { pieces, isJson: JSON_TYPE.test(request.headers['content-type'] ?? '') };
}

/** A body that is not encoded says its length, unless it comes in chunks (NaN). */
function plainLength({ headers }: Request): number {
  return headers['content-encoding'] === undefined ? Number(headers['content-length']) : Number.NaN;
}

const LARGE_BYTES = 1024 * 1024;

/**
 * No more than it says: Node sees to that. To join the pieces takes a millisecond or more for each megabyte; and room
 * for all of it before it is there could be had for the headers alone, at the cost of the collector.
 */
function readPieces(request: Request): Promise<Buffer[]> {
  return new Promise((resolve, reject) => {
    const giveUp = () => reject(Object.assign(new Error('the client gave up'), { status: 400 }));
    const pieces: Buffer[] = [];
    request.on('data', (piece: Buffer) => pieces.push(piece));
    request.once('end', () => resolve(pieces));
    request.once('error', giveUp);
    request.once('close', giveUp);
    if (request.destroyed) giveUp(); // no event would tell
  });
}

function readWhole(request: Request, response: Response, maxBytes: number): Promise<Buffer> {
  return new Promise((resolve, reject) => {
    raw({ type: () => true, limit: maxBytes })(request, response, (error: unknown) => {
      if (error === undefined) resolve(Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0));
      else reject(error);
    });
  });
}

/** application/json and every +json (RFC 6839 section 3.1), such as application/geo+json; with or without parameters. */
const JSON_TYPE = /^(?:application\/json|[^\s;/]+\/[^\s;/]+\+json)\s*(?:;|$)/i;
