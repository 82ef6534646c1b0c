import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { brotliCompress, constants, gzip } from 'node:zlib';
import type { Request, RequestHandler, Response } from 'express';

/** The best quality of brotli takes seconds for the largest file, and saves a few per cent. */
const BROTLI = { params: { [constants.BROTLI_PARAM_QUALITY]: 8 } };

const COMPRESS = {
  br: (bytes: Buffer) => promisify(brotliCompress)(bytes, BROTLI),
  gzip: (bytes: Buffer) => promisify(gzip)(bytes),
};

type Encoding = keyof typeof COMPRESS;

/** Bytes that are the same for everybody until the next start. Compressed when they are first asked for that way. */
export class StaticFile {
  readonly contentType: string;
  /** Names the content: equal for equal bytes, here and on every pod. */
  readonly version: string;
  readonly #bytes: Buffer;
  readonly #compressed: Partial<Record<Encoding, Promise<Buffer>>> = {};

  constructor(bytes: Buffer, contentType: string) {
    this.#bytes = bytes;
    this.contentType = contentType;
    this.version = createHash('sha256').update(bytes).digest('base64url').slice(0, 16);
  }

  async bytes(encoding: Encoding | null): Promise<Buffer> {
    if (encoding === null) return this.#bytes;
    this.#compressed[encoding] ??= COMPRESS[encoding](this.#bytes);
    return this.#compressed[encoding];
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
  const encoding = encodingFor(request.headers['accept-encoding'] ?? '');
  const bytes = await file.bytes(encoding);
  if (encoding !== null) response.setHeader('Content-Encoding', encoding);
  response.setHeader('Content-Type', file.contentType);
  response.setHeader('Content-Length', bytes.length);
  response.end(request.method === 'HEAD' ? undefined : bytes);
}

/** The smallest form that is accepted. */
function encodingFor(accepted: string): Encoding | null {
  if (/\bbr\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(accepted)) return 'br';
  return /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))/i.test(accepted) ? 'gzip' : null;
}

/** If-None-Match: a list of tags, compared weakly (RFC 9110 section 13.1.2). */
function names(header: string | undefined, etag: string): boolean {
  if (header === undefined) return false;
  return header
    .split(',')
    .some((tag) => tag.trim() === '*' || `W/${tag.trim().replace(/^W\//, '')}` === etag);
}
