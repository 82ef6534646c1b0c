import type { Request, RequestHandler } from 'express';
import type { CidrSet } from '../access/cidrSet.ts';
import type { SenderAuthorizer } from '../access/senderAuthorizer.ts';
import { errorAnswer } from '../http/answer.ts';
import { clientOf } from '../http/authorize.ts';
import { send } from '../http/send.ts';

export interface TokenPorts {
  readonly senders: Pick<SenderAuthorizer, 'authorize'>;
  readonly trustedProxies: CidrSet;
}

/** What the calls of this sender are counted by. It is asked several times on the way of a request. */
export function networkOf(ports: TokenPorts, request: Request): string {
  let network = networks.get(request);
  if (network === undefined) {
    network = clientOf(ports, request).network;
    networks.set(request, network);
  }
  return network;
}

const networks = new WeakMap<Request, string>();

/** Lets those through who show a token, in the header or where `elsewhere` finds one. */
export function requireToken(
  ports: TokenPorts,
  elsewhere: (request: Request) => string | undefined,
): RequestHandler {
  return async (request, response, next) => {
    const given = request.get('x-ingest-token') ?? elsewhere(request);
    const decision = await ports.senders.authorize(networkOf(ports, request), given);
    if (decision === 'granted') next();
    else send(response, ANSWERS[decision], request.method);
  };
}

const ANSWERS = {
  denied: errorAnswer('FORBIDDEN', 'the ingest token is missing or wrong'),
  limited: errorAnswer(
    'TOO_MANY_REQUESTS',
    'too many wrong ingest tokens from this address; try again later',
  ),
};
