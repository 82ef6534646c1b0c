import { type Request, type Response, raw } from 'express';
import type { RequestBody } from './route.ts';

/**
 * Reads a whole body, decompressed, of at most `maxBytes`. Rejects with an error that carries `status` (413 when it
 * is larger, 400 when the client gives up, 415 for an unknown encoding).
 */
export function readBody(request: Request, response: Response, maxBytes: number): Promise<RequestBody> {
  return new Promise((resolve, reject) => {
    raw({ type: () => true, limit: maxBytes })(request, response, (error: unknown) => {
      if (error !== undefined) {
        reject(error);
        return;
      }
      const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
      resolve({ bytes, isJson: JSON_TYPE.test(request.headers['content-type'] ?? '') });
    });
  });
}

/** application/json and every +json (RFC 6839 section 3.1), such as application/geo+json; with or without parameters. */
const JSON_TYPE = /^(?:application\/json|[^\s;/]+\/[^\s;/]+\+json)\s*(?:;|$)/i;
