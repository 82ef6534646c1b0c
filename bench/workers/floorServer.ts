import { createServer, type RequestListener, type ServerResponse } from 'node:http';
import express from 'express';
import helmet from 'helmet';
import { type ServerUsage, usageNow } from '../measure/usage.ts';
import { listen } from '../setup/listen.ts';
import { answerQuestions } from '../worker.ts';

export interface FloorAnswer {
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

interface FloorOrder {
  readonly kind: 'start';
  readonly server: keyof typeof FLOORS;
  readonly route: string;
  readonly answer: FloorAnswer;
}

export type FloorQuestion = FloorOrder | { readonly kind: 'usage' };

const FLOORS = { express: expressFloor, node: nodeFloor, nodeTogether: nodeTogetherFloor };

// A worker: a minimal server that answers the same bytes, headers included.
let port = 0;
answerQuestions(async (question: FloorQuestion): Promise<ServerUsage> => {
  if (question.kind === 'start') {
    port = await listen(createServer(FLOORS[question.server](question)));
  }
  return { port, ...usageNow() };
});

/** A bare Express with helmet and one route. The route sets the headers that helmet does not. */
function expressFloor({ route, answer }: FloorOrder): RequestListener {
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

function nodeFloor({ answer: { headers, body } }: FloorOrder) {
  const bytes = Buffer.from(body);
  const all = Object.entries(headers).flat();
  return (_request: unknown, response: ServerResponse) => {
    response.writeHead(200, all);
    response.end(bytes);
  };
}

/** Writes all answers of a turn of the event loop at its end, as AnswerWriter of the service does. */
function nodeTogetherFloor(order: FloorOrder): RequestListener {
  const answer = nodeFloor(order);
  let waiting: ServerResponse[] = [];
  const flush = () => {
    const all = waiting;
    waiting = [];
    for (const response of all) answer(null, response);
  };
  return (_request, response) => {
    if (waiting.push(response) === 1) setImmediate(flush);
  };
}
