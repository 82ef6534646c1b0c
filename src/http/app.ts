import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import helmet from 'helmet';
import { admitRequest, clientOf, refusalAnswer, refuseApiVersion, takesSessions } from './admission.ts';
import { errorAnswer } from './answer.ts';
import { apiRouter } from './apiRouter.ts';
import { type ApplicationPorts, admitApplicationCall } from './applicationAdmission.ts';
import { docsRoutes } from './docsPage.ts';
import { failureAnswer } from './failure.ts';
import { measure } from './measure.ts';
import { apiDocument } from './openapi/document.ts';
import type { PollingPorts } from './pollingListener.ts';
import { probeRoutes } from './probes.ts';
import type { ApiVersion } from './route.ts';
import { send } from './send.ts';
import type { BodyPorts } from './takeBody.ts';

export type AppPorts = PollingPorts & ApplicationPorts & BodyPorts;

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
  docsRoutes(app, apiDocument(ports.routes));
  for (const version of VERSIONS) {
    app.use(`/api/${version}`, admission(ports, version), apiVersionHeader(version));
    app.use(`/api/${version}`, apiRouter(ports, version, ports.routes));
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

/** Every v1 answer says until when v1 is there, in the words of the API document, refusals and errors included. */
function deprecationMark(_request: Request, response: Response, next: NextFunction): void {
  response.setHeader('Deprecation', 'true');
  response.setHeader('Sunset', '2027-03-08');
  next();
}

function admission(ports: AppPorts, version: ApiVersion): Middleware {
  return async (request, response, next) => {
    const nowMs = ports.clock();
    const admission = await (takesSessions(version)
      ? admitApplicationCall(ports, version, request, nowMs)
      : admitRequest(ports, request, nowMs));
    if (admission.kind !== 'admitted') {
      send(response, refusalAnswer(admission, version), request.method);
      return;
    }
    const client = version === 'v1' ? { client: clientOf(ports, request) } : {};
    response.locals['admitted'] = { caller: admission.caller, nowMs, ...client };
    next();
  };
}

function apiVersionHeader(version: ApiVersion): Middleware {
  return (request, response, next) => {
    const refusal = refuseApiVersion(request, version);
    if (refusal === null) next();
    else send(response, refusal, request.method);
  };
}
