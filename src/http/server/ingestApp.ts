import express, { type Express, type NextFunction, type Request, type Response } from 'express';
import helmet from 'helmet';
import { Overloaded } from '../../base/fairSemaphore.ts';
import { type Ingest, IngestOverload } from '../../flows/ingest/ingest.ts';
import type { Metrics } from '../../metrics.ts';
import { type Answer, errorAnswer } from '../answers/answer.ts';
import { type PositionPorts, positionRoutes } from '../routes/positions.ts';
import { measure } from './measure.ts';
import { onlyMethods } from './methodAnswer.ts';
import { type Probes, probeRoutes } from './probes.ts';
import { send } from './send.ts';
import { type ErrorLog, type ErrorPorts, unexpectedErrorAnswer } from './unexpectedError.ts';

export interface IngestAppPorts extends Omit<PositionPorts, 'ingest'> {
  /** Absent in pods without the role: then only the probes and metrics are served. */
  readonly ingest: Ingest | null;
  readonly probes: Probes;
  readonly metrics: Pick<Metrics, 'exposition' | 'countRejected' | 'observeRequest'>;
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
