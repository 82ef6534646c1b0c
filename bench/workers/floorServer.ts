import { createServer, type RequestListener } from 'node:http';
import express from 'express';
import helmet from 'helmet';
import { type ServerUsage, usageNow } from '../measure/usage.ts';
import { listen } from '../setup/listen.ts';
import { answerQuestions } from '../worker.ts';

export interface FloorAnswer {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export type FloorQuestion =
  | {
      readonly kind: 'start';
      readonly server: 'express' | 'node';
      readonly route: string;
      readonly answer: FloorAnswer;
    }
  | { readonly kind: 'usage' };

// A worker: a minimal server that answers the same bytes, headers included.
let port = 0;
answerQuestions(async (question: FloorQuestion): Promise<ServerUsage> => {
  if (question.kind === 'start') {
    const floor = question.server === 'express' ? expressFloor(question) : nodeFloor(question.answer);
    port = await listen(createServer(floor));
  }
  return { port, ...usageNow() };
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

function nodeFloor({ headers, body }: FloorAnswer): RequestListener {
  const bytes = Buffer.from(body);
  const all = Object.entries(headers).flat();
  return (_request, response) => {
    response.writeHead(200, all);
    response.end(bytes);
  };
}
