import type { ServerResponse } from 'node:http';
import type { Answer } from './answer.ts';
import { sendLong } from './longBody.ts';

/**
 * Writes an answer once; HEAD gets the same headers without the body. Of a long body, a promise that resolves when it
 * is sent; it rejects when it cannot be, and then another answer may be sent unless that one has begun.
 */
export function send(
  response: ServerResponse,
  answer: Answer,
  method: string | undefined,
): Promise<void> | undefined {
  if (response.headersSent) return undefined;
  const { body } = answer;
  if (body === null || typeof body === 'string') {
    writeHeaders(response, answer, body === null ? null : Buffer.byteLength(body));
    response.end(method === 'HEAD' || body === null ? undefined : body);
    return undefined;
  }
  if (method !== 'HEAD') {
    return sendLong(response, body, () => writeHeaders(response, answer, body.bytes));
  }
  writeHeaders(response, answer, body.bytes);
  response.end();
  return undefined;
}

function writeHeaders(
  response: ServerResponse,
  { status, headers, body }: Answer,
  bytes: number | null,
): void {
  response.statusCode = status;
  for (const name in headers) response.setHeader(name, headers[name] as string);
  if (body !== null) response.setHeader('Content-Type', 'application/json; charset=utf-8');
  if (bytes !== null) response.setHeader('Content-Length', bytes);
}
