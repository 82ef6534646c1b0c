import type { Express } from 'express';
import { type Answer, errorAnswer } from '../answers/answer.ts';
import { onlyMethods } from './methodAnswer.ts';
import { send } from './send.ts';

export interface Probes {
  /** Memory was filled once. */
  loaded(): boolean;
  /** Memory is loaded and follows Postgres closely enough (Follower.ready). */
  ready(): boolean;
}

/**
 * GET /healthz: the process is up. GET /readyz: it may be sent requests; 503 otherwise. Until memory is filled,
 * nothing else is answered.
 */
export function probeRoutes(app: Express, probes: Probes): void {
  probe(app, '/healthz', () => ({ status: 200, body: '{"status":"up"}' }));
  probe(app, '/readyz', () =>
    probes.ready()
      ? { status: 200, body: '{"status":"ready"}' }
      : { status: 503, body: '{"status":"not ready"}' },
  );
  app.use((request, response, next) => {
    if (probes.loaded()) next();
    else send(response, errorAnswer('SERVICE_UNAVAILABLE', 'the service is starting'), request.method);
  });
}

function probe(app: Express, path: string, answer: () => Answer): void {
  app.all(path, onlyMethods('GET', 'HEAD'), (request, response) => send(response, answer(), request.method));
}
