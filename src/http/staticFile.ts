import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Request, RequestHandler, Response } from 'express';

/** The level of brotli. The highest takes more than a second for a megabyte, and saves a few per cent. */
const QUALITY = 8;

type Encoding = 'br' | 'gzip';

const ENCODINGS: readonly Encoding[] = ['br', 'gzip'];

/** Bytes that are the same for everybody until the next start. Compressed when they are first asked for that way. */
export class StaticFile {
  readonly contentType: string;
  /** Names the content: equal for equal bytes, here and on every pod. */
  readonly version: string;
  readonly #bytes: Buffer;
  readonly #quality: number;
  readonly #compressed: Partial<Record<Encoding, Promise<Buffer>>> = {};

  constructor(bytes: Buffer, contentType: string, quality = QUALITY) {
    this.#bytes = bytes;
    this.#quality = quality;
    this.contentType = contentType;
    this.version = createHash('sha256').update(bytes).digest('base64url').slice(0, 16);
  }

  async bytes(encoding: Encoding | null): Promise<Buffer> {
    if (encoding === null) return this.#bytes;
    this.#compressed[encoding] ??= this.#compress(encoding);
    return this.#compressed[encoding];
  }

  /** In another thread: nothing else waits for it. */
  #compress(encoding: Encoding): Promise<Buffer> {
    if (encoding === 'gzip') return promisify(gzip)(this.#bytes);
    const params = { [constants.BROTLI_PARAM_QUALITY]: this.#quality };
    return promisify(brotliCompress)(this.#bytes, { params });
  }
}

/** Answers GET and HEAD with a file and these headers beside its own, 304 to who has this version of it. */
export function serveFile(file: StaticFile, headers: Readonly<Record<string, string>> = {}): RequestHandler {
  // Weak: the compressed form has it too (RFC 9110 section 8.8.1).
  const etag = `W/"${file.version}"`;
  return async (request, response) => {
    const isPinned = request.originalUrl.endsWith(`?v=${file.version}`);
    response.setHeader('Vary', 'Accept-Encoding');
    for (const name in headers) response.setHeader(name, headers[name] as string);
    response.setHeader('ETag', etag);
    response.setHeader('Cache-Control', isPinned ? 'public, max-age=31536000, immutable' : 'no-cache');
    if (namesEtag(request.headers['if-none-match'], etag)) {
      response.statusCode = 304;
      response.end();
    } else {
      await sendBytes(file, request, response);
    }
  };
}

async function sendBytes(file: StaticFile, request: Request, response: Response): Promise<void> {
  const encoding = encodingFor(request);
  const bytes = await file.bytes(encoding);
  if (encoding !== null) response.setHeader('Content-Encoding', encoding);
  response.setHeader('Content-Type', file.contentType);
  response.setHeader('Content-Length', bytes.length);
  response.end(request.method === 'HEAD' ? undefined : bytes);
}

/** The smallest form that is accepted, whatever the reader likes best. */
function encodingFor(request: Request): Encoding | null {
  return ENCODINGS.find((encoding) => request.acceptsEncodings(encoding) === encoding) ?? null;
}

/**
 * Whether If-None-Match names a version of what is asked for: by a list of tags, or by * for any. Tags are compared weakly
 * (RFC 9110 section 13.1.2). `etag` is one with W/.
 */
export function namesEtag(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false;
  if (ifNoneMatch === etag) return true; // nearly always
  return ifNoneMatch
    .split(',')
    .some((tag) => tag.trim() === '*' || `W/${tag.trim().replace(/^W\//, '')}` === etag);
}
