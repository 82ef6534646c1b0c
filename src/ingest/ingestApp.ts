import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import helmet from 'helmet';
import { type Answer, errorAnswer } from '../http/answer.ts';
import { measure, type Observe } from '../http/measure.ts';
import { onlyMethods } from '../http/methodAnswer.ts';
import { type Probes, probeRoutes } from '../http/probes.ts';
import { send } from '../http/send.ts';
import { type ErrorLog, type ErrorPorts, unexpectedErrorAnswer } from '../http/unexpectedError.ts';
import { Overloaded } from '../lib/fairSemaphore.ts';
import { type Ingest, IngestOverload } from './ingest.ts';
import { type PositionPorts, positionRoutes } from './positions.routes.ts';

export interface IngestAppPorts extends Omit<PositionPorts, 'ingest'> {
  /** Absent in pods without the role: then only the probes and metrics are served. */
  readonly ingest: Ingest | null;
  readonly probes: Probes;
  readonly metrics: PositionPorts['metrics'] & {
    readonly observeRequest: Observe;
    exposition(): Promise<{ readonly contentType: string; readonly text: string }>;
  };
  readonly log: ErrorLog;
  readonly onDamaged: ErrorPorts['onDamaged'];
}

/** The listener for positions, on a port of its own, with the probes and metrics of the pod. */
export function ingestApp(ports: IngestAppPorts): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', false).enable('case sensitive routing');
  app.use(measure(ports.metrics.observeRequest));
  app.use(helmet());
  app.all('/metrics', onlyMethods('GET', 'HEAD'), async (_request, response) => {
    const { contentType, text } = await ports.metrics.exposition();
    response.set('Content-Type', contentType).end(text);
  });
  probeRoutes(app, ports.probes, true);
  if (ports.ingest !== null) positionRoutes(app, { ...ports, ingest: ports.ingest });
  app.use((request, response) => send(response, errorAnswer('NOT_FOUND'), request.method));
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    const answer = overloadAnswer(error) ?? unexpectedErrorAnswer(error, request, ports, 'INVALID_BODY');
    send(response, answer, request.method);
  });
  return app;
}

function overloadAnswer(error: unknown): Answer | null {
  const isCrowded = error instanceof Overloaded;
  if (!isCrowded && !(error instanceof IngestOverload)) return null;
  const reason = isCrowded ? 'too many bodies wait to be read' : error.message;
  return errorAnswer('SERVICE_UNAVAILABLE', `${reason}; send again shortly`);
}
