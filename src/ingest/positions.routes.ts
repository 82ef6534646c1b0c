import type { Express, Request } from 'express';
import { type Answer, errorAnswer } from '../http/answer.ts';
import { named } from '../http/measure.ts';
import { onlyMethods } from '../http/methodAnswer.ts';
import { send } from '../http/send.ts';
import { MAX_POINTS } from './formats/batchReader.ts';
import { parseTraccar } from './formats/parseTraccar.ts';
import { parsePositionJson } from './ingestBodies.ts';
import { networkOf, requireToken, type TokenPorts } from './ingestToken.ts';
import { osmandRoute } from './osmand.routes.ts';
import {
  NOT_JSON,
  type StorePorts,
  storeBatch,
  storedAnswer,
  storePoint,
  TOO_MANY_VALUES,
  windowOf,
} from './storePoints.routes.ts';

export type PositionPorts = StorePorts & TokenPorts;

/** The routes that take positions. */
export function positionRoutes(app: Express, ports: PositionPorts): void {
  const guard = requireToken(ports, () => undefined);
  app.all('/positions', named('/positions'), guard, onlyMethods('POST'), async (request, response) => {
    send(response, await positions(ports, request), request.method);
  });
  app.all('/traccar', named('/traccar'), guard, onlyMethods('POST'), async (request, response) => {
    send(response, await traccar(ports, request), request.method);
  });
  osmandRoute(app, ports);
}

async function positions(ports: PositionPorts, request: Request): Promise<Answer> {
  const network = networkOf(ports, request);
  const batch = await ports.bodies.readBatch(request, network, windowOf(ports));
  if (!batch.ok) return batch.error === 'TOO_MANY' ? TOO_MANY_POINTS : NOT_JSON;
  return storedAnswer(ports, network, await storeBatch(ports, batch.value));
}

const TOO_MANY_POINTS = errorAnswer(
  'PAYLOAD_TOO_LARGE',
  `a request may carry at most ${MAX_POINTS} points; nothing was stored`,
);

/** A rejected position is answered with 200 too: Traccar would send it again for ever. */
async function traccar(ports: PositionPorts, request: Request): Promise<Answer> {
  const network = networkOf(ports, request);
  const body = parsePositionJson(await ports.bodies.readPosition(request, network));
  if (!body.ok) return body.error === 'not_json' ? NOT_JSON : TOO_MANY_VALUES;
  const { nowMs, oldestMs } = windowOf(ports);
  return storedAnswer(ports, network, await storePoint(ports, parseTraccar(body.value, nowMs, oldestMs)));
}
