import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { Request, RequestHandler, Response } from 'express';

const compress = promisify(gzip);

/** Bytes that are the same for everybody until the next start. Compressed when they are first asked for that way. */
export class StaticFile {
  readonly contentType: string;
  /** Names the content: equal for equal bytes, here and on every pod. */
  readonly version: string;
  readonly #bytes: Buffer;
  #compressed: Promise<Buffer> | null = null;

  constructor(bytes: Buffer, contentType: string) {
    this.#bytes = bytes;
    this.contentType = contentType;
    this.version = createHash('sha256').update(bytes).digest('base64url').slice(0, 16);
  }

  async bytes(asGzip: boolean): Promise<Buffer> {
    if (!asGzip) return this.#bytes;
    this.#compressed ??= compress(this.#bytes);
    return this.#compressed;
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
    if (names(request.headers['if-none-match'], etag)) {
      response.statusCode = 304;
      response.end();
    } else {
      await sendBytes(file, request, response);
    }
  };
}

async function sendBytes(file: StaticFile, request: Request, response: Response): Promise<void> {
  const asGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(request.headers['accept-encoding'] ?? '');
  const bytes = await file.bytes(asGzip);
  if (asGzip) response.setHeader('Content-Encoding', 'gzip');
  response.setHeader('Content-Type', file.contentType);
  response.setHeader('Content-Length', bytes.length);
  response.end(request.method === 'HEAD' ? undefined : bytes);
}

/** If-None-Match: a list of tags, compared weakly (RFC 9110 section 13.1.2). */
function names(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header
    .split(',')
    .some((tag) => tag.trim() === '*' || `W/${tag.trim().replace(/^W\//, '')}` === etag);
}
