import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import helmet from 'helmet';
import type { CidrSet } from '../access/cidrSet.ts';
import { clientAddress } from '../access/clientAddress.ts';
import type { Clock } from '../base/clock.ts';
import type { Admission, Admittance } from '../flows/admit.ts';
import { type Answer, errorAnswer, plainErrorAnswer } from './answer.ts';
import { apiRouter } from './apiRouter.ts';
import { type FailureLog, failureAnswer } from './failure.ts';
import { measure, type Observe } from './measure.ts';
import { type Probes, probeRoutes } from './probes.ts';
import type { ApiVersion, Route } from './route.ts';
import { send } from './send.ts';

export interface AppPorts {
  readonly admittance: Admittance;
  readonly routes: readonly Route[];
  readonly trustedProxies: CidrSet;
  readonly clock: Clock;
  readonly probes: Probes;
  readonly log: FailureLog;
  readonly observe: Observe;
}

const API_KEY_HEADER = 'x-api-key';
const VERSIONS: readonly ApiVersion[] = ['v2', 'v3', 'webhooks'];

/** The public listener: one chain that a request passes from top to bottom. */
export function createApp(ports: AppPorts): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', false).enable('case sensitive routing');
  app.use(measure(ports.observe));
  app.use(helmet());
  app.use('/api/v3', betaMark);
  probeRoutes(app, ports.probes);
  for (const version of VERSIONS) {
    app.use(`/api/${version}`, admission(ports, version), versionHeader(version));
    app.use(`/api/${version}`, apiRouter(version, ports.routes));
  }
  app.use((request, response) => send(response, errorAnswer('NOT_FOUND'), request.method));
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    send(response, failureAnswer(error, request, ports.log), request.method);
  });
  return app;
}

type Middleware = (request: Request, response: Response, next: NextFunction) => void;

/** Every v3 answer says that v3 is a beta, refusals and errors included. */
function betaMark(_request: Request, response: Response, next: NextFunction): void {
  response.setHeader('X-API-Status', 'beta');
  next();
}

function admission({ admittance, trustedProxies, clock }: AppPorts, version: ApiVersion): Middleware {
  return async (request, response, next) => {
    const nowMs = clock();
    const forwardedFor = request.headers['x-forwarded-for'];
    const client = clientAddress(
      request.socket.remoteAddress,
      Array.isArray(forwardedFor) ? forwardedFor.join(',') : forwardedFor,
      trustedProxies,
    );
    const admission = await admittance.admit(apiKeyOf(request), client, nowMs);
    if (admission.kind !== 'admitted') {
      send(response, refusalAnswer(admission, version), request.method);
      return;
    }
    response.locals['admitted'] = { caller: admission.caller, nowMs };
    next();
  };
}

/** Only the header X-API-Key carries a key; Authorization is for session tokens and is not looked at here. */
function apiKeyOf(request: Request): string | undefined {
  const value = request.headers[API_KEY_HEADER];
  return Array.isArray(value) ? value.join(',') : value;
}

function refusalAnswer(admission: Exclude<Admission, { kind: 'admitted' }>, version: ApiVersion): Answer {
  if (admission.kind === 'refused') return errorAnswer(admission.code);
  const message = `rate limit exceeded: ${LIMIT_NAMES[admission.limit]}`;
  return version === 'v2' ? plainErrorAnswer(429, message) : errorAnswer('TOO_MANY_REQUESTS', message);
}

type LimitName = Extract<Admission, { kind: 'limited' }>['limit'];

const LIMIT_NAMES: Readonly<Record<LimitName, string>> = {
  ip_minute: 'requests per IP address per minute',
  key_minute: 'requests per key per minute',
  key_hour: 'requests per key per hour',
};

/** The header X-API-Version belongs to v1: v2 accepts no other value in it, v3 does not look at it. */
function versionHeader(version: ApiVersion): Middleware {
  return (request, response, next) => {
    const value = request.headers['x-api-version'];
    if (version !== 'v2' || value === undefined || value === 'v1') next();
    else
      send(response, errorAnswer('BAD_REQUEST', 'the header X-API-Version must not be set'), request.method);
  };
}
