import type { ServerResponse } from 'node:http';
import type { Answer } from './answer.ts';

/** Writes an answer once; HEAD gets the same headers without the body. */
export function send(response: ServerResponse, answer: Answer, method: string | undefined): void {
  if (response.headersSent) return;
  response.statusCode = answer.status;
  for (const name in answer.headers) response.setHeader(name, answer.headers[name] as string);
  if (answer.body === null) {
    response.end();
    return;
  }
  response.setHeader('Content-Type', 'application/json; charset=utf-8');
  response.setHeader('Content-Length', Buffer.byteLength(answer.body));
  response.end(method === 'HEAD' ? undefined : answer.body);
}
