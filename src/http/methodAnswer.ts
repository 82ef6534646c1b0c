import type { RequestHandler } from 'express';
import { type Answer, errorAnswer } from './answer.ts';
import { send } from './send.ts';

/** The answer to a method that a path does not have: OPTIONS gets the list of methods, any other gets 405. */
export function methodAnswer(method: string, allowed: readonly string[]): Answer {
  const headers = { Allow: [...allowed, 'OPTIONS'].join(', ') };
  if (method === 'OPTIONS') return { status: 204, body: null, headers };
  return { ...errorAnswer('METHOD_NOT_ALLOWED'), headers };
}

/** Lets these methods through and answers the others. */
export function onlyMethods(...methods: readonly string[]): RequestHandler {
  return (request, response, next) => {
    if (methods.includes(request.method)) next();
    else send(response, methodAnswer(request.method, methods), request.method);
  };
}
