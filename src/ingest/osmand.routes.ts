import type { Express, Request } from 'express';
import { type Answer, errorAnswer } from '../http/answer.ts';
import { named } from '../http/measure.ts';
import { onlyMethods } from '../http/methodAnswer.ts';
import { send } from '../http/send.ts';
import type { Result } from '../lib/result.ts';
import { readOsmandParams, readTokenParameter } from './formats/osmandParams.ts';
import { parseOsmand } from './formats/parseOsmand.ts';
import { parseOsmandJson } from './formats/parseOsmandJson.ts';
import type { ParsedPoint } from './formats/parsePoint.ts';
import type { Rejection } from './formats/rejection.ts';
import { parsePositionJson } from './ingestBodies.ts';
import { networkOf, requireToken, type TokenPorts } from './ingestToken.ts';
import {
  NOT_JSON,
  type StorePorts,
  storedAnswer,
  storePoint,
  TOO_MANY_VALUES,
  windowOf,
} from './storePoints.routes.ts';

type PhonePorts = StorePorts & TokenPorts;

/**
 * The route of phones, which cannot send headers: it takes the token as a parameter too, so the body, a form, is read
 * before the token is known.
 */
export function osmandRoute(app: Express, ports: PhonePorts): void {
  app.all(
    '/osmand',
    named('/osmand'),
    async (request, _response, next) => {
      request.body = await ports.bodies.readForm(request, networkOf(ports, request));
      next();
    },
    requireToken(ports, (request) => readTokenParameter(queryOf(request), formOf(request))),
    onlyMethods('GET', 'POST'),
    async (request, response) => {
      send(response, await osmand(ports, request), request.method);
    },
  );
}

async function osmand(ports: PhonePorts, request: Request): Promise<Answer> {
  const { nowMs, oldestMs } = windowOf(ports);
  if (isJson(request)) {
    const body = parsePositionJson(request.body as Buffer);
    if (!body.ok) return body.error === 'not_json' ? NOT_JSON : TOO_MANY_VALUES;
    return stored(ports, request, parseOsmandJson(body.value, nowMs, oldestMs));
  }
  const params = readOsmandParams(queryOf(request), formOf(request));
  if (params === 'given_twice') return errorAnswer('BAD_REQUEST', 'a parameter is given twice');
  if (params === 'too_many') return errorAnswer('BAD_REQUEST', 'too many parameters are given');
  return stored(ports, request, parseOsmand(params, nowMs, oldestMs));
}

async function stored(
  ports: PhonePorts,
  request: Request,
  point: Result<ParsedPoint, Rejection>,
): Promise<Answer> {
  const summary = await storePoint(ports, point);
  const [rejected] = summary.rejected;
  if (rejected !== undefined) return errorAnswer('BAD_REQUEST', rejected.message);
  return storedAnswer(ports, networkOf(ports, request), summary);
}

function isJson({ headers, body }: Request): boolean {
  return (body as Buffer).length > 0 && /^application\/json\b/i.test(headers['content-type'] ?? '');
}

const queryOf = ({ originalUrl }: Request): string => originalUrl.split(/\?(.*)/s, 2)[1] ?? '';
const formOf = (request: Request): string =>
  isJson(request) ? '' : (request.body as Buffer).toString('utf8');
