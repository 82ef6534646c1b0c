import type { Request, RequestHandler } from 'express';
import type { CidrSet } from '../access/cidrSet.ts';
import type { SenderAdmittance } from '../flows/admitSender.ts';
import { clientOf } from './admission.ts';
import { errorAnswer } from './answer.ts';
import { send } from './send.ts';

export interface TokenPorts {
  readonly senders: Pick<SenderAdmittance, 'admit'>;
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
    const admission = await ports.senders.admit(networkOf(ports, request), given);
    if (admission === 'admitted') next();
    else send(response, REFUSALS[admission], request.method);
  };
}

const REFUSALS = {
  refused: errorAnswer('FORBIDDEN', 'the ingest token is missing or wrong'),
  limited: errorAnswer(
    'TOO_MANY_REQUESTS',
    'too many wrong ingest tokens from this address; try again later',
  ),
};
