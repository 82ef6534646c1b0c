import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import helmet from 'helmet';
import { errorAnswer } from './answer.ts';
import { apiRouter } from './apiRouter.ts';
import { authorizeRequest, clientOf, deniedAnswer, rejectApiVersion, takesSessions } from './authorize.ts';
import { type ApplicationPorts, authorizeSessionCall } from './authorizeSession.ts';
import { measure } from './measure.ts';
import type { PollingPorts } from './pollingListener.ts';
import { probeRoutes } from './probes.ts';
import type { ApiVersion } from './route.ts';
import { send } from './send.ts';
import type { BodyPorts } from './takeBody.ts';
import { unexpectedErrorAnswer } from './unexpectedError.ts';

export type AppPorts = PollingPorts &
  ApplicationPorts &
  BodyPorts & {
    /** Adds the pages for people: no key is asked for on them. */
    readonly addPages: (app: Express) => void;
  };

const VERSIONS: readonly ApiVersion[] = ['v1', 'v2', 'v3', 'webhooks'];

/** The public listener: one chain that a request passes from top to bottom. */
export function createApp(ports: AppPorts): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', false).enable('case sensitive routing');
  app.use(measure(ports.observe));
  app.use(helmet());
  app.use('/api/v3', betaMark);
  app.use('/api/v1', deprecationMark);
  probeRoutes(app, ports.probes);
  ports.addPages(app);
  for (const version of VERSIONS) {
    app.use(`/api/${version}`, authorization(ports, version), apiVersionHeader(version));
    app.use(`/api/${version}`, apiRouter(ports, version, ports.routes));
  }
  app.use((request, response) => send(response, errorAnswer('NOT_FOUND'), request.method));
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    send(response, unexpectedErrorAnswer(error, request, ports), request.method);
  });
  return app;
}

type Middleware = (request: Request, response: Response, next: NextFunction) => void;

/** Every v3 answer says that v3 is a beta, errors included. */
function betaMark(_request: Request, response: Response, next: NextFunction): void {
  response.setHeader('X-API-Status', 'beta');
  next();
}

/** Every v1 answer says until when v1 is there, in the words of the API document, errors included. */
function deprecationMark(_request: Request, response: Response, next: NextFunction): void {
  response.setHeader('Deprecation', 'true');
  response.setHeader('Sunset', '2027-03-08');
  next();
}

function authorization(ports: AppPorts, version: ApiVersion): Middleware {
  return async (request, response, next) => {
    const nowMs = ports.clock();
    const decision = await (takesSessions(version)
      ? authorizeSessionCall(ports, version, request, nowMs)
      : authorizeRequest(ports, request, nowMs));
    if (decision.kind !== 'granted') {
      send(response, deniedAnswer(decision, version), request.method);
      return;
    }
    const client = version === 'v1' ? { client: clientOf(ports, request) } : {};
    response.locals['authorized'] = { caller: decision.caller, nowMs, ...client };
    next();
  };
}

function apiVersionHeader(version: ApiVersion): Middleware {
  return (request, response, next) => {
    const error = rejectApiVersion(request, version);
    if (error === null) next();
    else send(response, error, request.method);
  };
}
