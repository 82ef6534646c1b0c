import type { IncomingMessage } from 'node:http';
import { Socket } from 'node:net';
import express, {
  type Express,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
} from 'express';
import helmet from 'helmet';
import { type Answer, errorAnswer, methodAnswer, send } from './answer.ts';
import type { Observe } from './exchange.ts';

// Not an import: see exchange.ts.
const http = process.getBuiltinModule('node:http');

/**
 * An Express application of this service: measured, with the headers of helmet. What none of the routes of `addRoutes`
 * answers is a 404. `fail` gives the answer to what they throw.
 */
export function expressApp(
  observe: Observe,
  addRoutes: (app: Express) => void,
  fail: (error: unknown, request: IncomingMessage) => Answer,
): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', false).enable('case sensitive routing');
  app.use(measure(observe), helmet());
  addRoutes(app);
  app.use((request, response) => send(response, errorAnswer('NOT_FOUND'), request.method));
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    send(response, fail(error, request), request.method);
  });
  return app;
}

/** Names and values that helmet gives to every answer, taken from helmet itself. */
export function securityHeaders(): string[] {
  const given: string[] = [];
  const request = new http.IncomingMessage(new Socket());
  const response = new http.ServerResponse(request);
  response.setHeader = (name, value) => {
    given.push(name, String(value));
    return response;
  };
  helmet()(request, response, () => undefined);
  return given;
}

/** Observes every answer under the pattern of its route (see `named`), never under its path. */
function measure(observe: Observe): RequestHandler {
  return (request, response, next) => {
    const startedAtMs = performance.now();
    response.once('finish', () => {
      const route = (response.locals['route'] as string | undefined) ?? 'other';
      observe(route, request.method, response.statusCode, (performance.now() - startedAtMs) / 1000);
    });
    next();
  };
}

/** Says under which route what follows is observed. */
export function named(route: string): RequestHandler {
  return (_request, response, next) => {
    response.locals['route'] = route;
    next();
  };
}

/** Lets these methods through and answers the others. */
export function onlyMethods(...methods: readonly string[]): RequestHandler {
  return (request, response, next) => {
    if (methods.includes(request.method)) next();
    else send(response, methodAnswer(request.method, methods), request.method);
  };
}

export interface Probes {
  /** Memory was filled once. */
  loaded(): boolean;
  /** Calls are answered from memory, if need be without Postgres. */
  canAnswer(): boolean;
  /** What is slower or older than usual, or shared with fewer pods; empty when all is well. */
  degradations(): readonly string[];
  /** Why points and writes are not taken, within two seconds; null when they are. */
  writeTrouble(): Promise<string | null>;
  /** The last known result, without waiting. */
  lastWriteTrouble(): string | null;
}

/**
 * GET /healthz: the process is up. GET /readyz: what this listener is for can be done; 503 otherwise, on the public one
 * while polls cannot be answered, with `?writes=true` and on the one of positions (`forWrites`) also while nothing can
 * be written. Until memory is filled, nothing else is answered.
 */
export function probeRoutes(app: Express, probes: Probes, forWrites = false): void {
  probe(app, '/healthz', () => ({ status: 200, body: '{"status":"up"}' }));
  probe(app, '/readyz', (request) => readiness(probes, forWrites || asksForWrites(request)));
  app.use((request, response, next) => {
    if (probes.loaded()) next();
    else send(response, STARTING, request.method);
  });
}

async function readiness(probes: Probes, forWrites: boolean): Promise<Answer> {
  if (!probes.loaded()) return readinessAnswer(503, 'not ready', ['starting']);
  const trouble = forWrites ? await probes.writeTrouble() : probes.lastWriteTrouble();
  const reasons = new Set(probes.degradations());
  if (trouble !== null) reasons.add(`database_${trouble}`);
  const isDone = probes.canAnswer() && !(forWrites && trouble !== null);
  if (!isDone) return readinessAnswer(503, 'not ready', reasons);
  return readinessAnswer(200, reasons.size === 0 ? 'ready' : 'degraded', reasons);
}

function readinessAnswer(status: number, word: string, reasons: Iterable<string>): Answer {
  return { status, body: JSON.stringify({ status: word, reasons: [...reasons] }) };
}

function asksForWrites({ url }: Request): boolean {
  return new URLSearchParams(url.split('?')[1] ?? '').get('writes') === 'true';
}

function probe(app: Express, path: string, answer: (request: Request) => Answer | Promise<Answer>): void {
  app.all(path, onlyMethods('GET', 'HEAD'), async (request, response) =>
    send(response, await answer(request), request.method),
  );
}

/** The answer to everything but the probes until memory is filled. */
export const STARTING = errorAnswer('SERVICE_UNAVAILABLE', 'the service is starting');
