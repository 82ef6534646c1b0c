import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';
import express from 'express';
import helmet from 'helmet';
import { answerQuestions } from '../worker.ts';

/** An answer as the service gave it. */
export interface FloorAnswer {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type FloorQuestion =
  | {
      readonly kind: 'start';
      readonly server: 'express' | 'node';
      /** The route in Express' own notation. */
      readonly route: string;
      readonly answer: FloorAnswer;
    }
  | { readonly kind: 'usage' };

export interface FloorReply {
  readonly port: number;
  readonly usage: NodeJS.CpuUsage;
  readonly rssMb: number;
}

// A worker: a minimal server that answers the same bytes, headers included.
let port = 0;
answerQuestions(async (question: FloorQuestion): Promise<FloorReply> => {
  if (question.kind === 'start') {
    port = await listen(question.server === 'express' ? expressFloor(question) : nodeFloor(question.answer));
  }
  return { port, usage: process.cpuUsage(), rssMb: process.memoryUsage.rss() / 2 ** 20 };
});

/** A bare Express with helmet and one route. The route sets the headers that helmet does not. */
function expressFloor({ route, answer }: Extract<FloorQuestion, { kind: 'start' }>): RequestListener {
  const app = express();
  app.disable('x-powered-by').disable('etag');
  app.use(helmet());
  const body = Buffer.from(answer.body);
  app.get(route, (_request, response) => {
    for (const [name, value] of Object.entries(answer.headers)) {
      if (!response.hasHeader(name)) response.setHeader(name, value);
    }
    response.end(body);
  });
  return app;
}

/** A bare node:http handler. */
function nodeFloor({ headers, body }: FloorAnswer): RequestListener {
  const bytes = Buffer.from(body);
  const all = Object.entries(headers).flat();
  return (_request, response) => {
    response.writeHead(200, all);
    response.end(bytes);
  };
}

function listen(listener: RequestListener): Promise<number> {
  const server = createServer(listener);
  return new Promise((resolve) => {
    server.listen(0, '127.0.0.1', () => resolve((server.address() as AddressInfo).port));
  });
}
