import type { Express, Request } from 'express';
import { type Answer, errorAnswer } from './answer.ts';
import { onlyMethods } from './methodAnswer.ts';
import { send } from './send.ts';

export interface Probes {
  /** Memory was filled once. */
  loaded(): boolean;
  /** Calls are answered from memory, if need be without Postgres. */
  canAnswer(): boolean;
  /** What is slower or older than usual, or shared with fewer pods; empty when all is well. */
  degradations(): readonly string[];
  /** Why points and writes are not taken, within two seconds; null when they are. */
  writeTrouble(): Promise<string | null>;
  /** The same at once, as it was when somebody asked last. */
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
    else send(response, errorAnswer('SERVICE_UNAVAILABLE', 'the service is starting'), request.method);
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
