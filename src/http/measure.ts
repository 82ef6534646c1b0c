import type { RequestHandler } from 'express';

/** Called for every finished answer: route pattern, method, status, seconds from the request's headers on. */
export type Observe = (route: string, method: string, status: number, seconds: number) => void;

/** Observes every answer under the pattern of its route (see `named`), never under its path. */
export function measure(observe: Observe): RequestHandler {
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
