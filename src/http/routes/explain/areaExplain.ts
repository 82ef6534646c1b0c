import { scopeMask } from '../../../access/scopes.ts';
import { DAY_MS } from '../../../base/durations.ts';
import { formatIso } from '../../../base/isoTime.ts';
import type { WorkTurns } from '../../../base/workTurns.ts';
import type { ExplainRequest } from '../../../flows/explain/explainRequest.ts';
import type { Explanations } from '../../../flows/explain/explanations.ts';
import type { AreaCatalog } from '../../../memory/areaCatalog.ts';
import type { Fleet } from '../../../memory/fleet.ts';
import { type Answer, errorAnswer } from '../../answers/answer.ts';
import { NotBegun } from '../../answers/notBegun.ts';
import { EXPLAIN_AREA } from '../../openapi/operations/explainOperation.ts';
import {
  explainWindowOf,
  STEPS,
  TOO_MUCH_EXPLAIN_WORK,
  tooManyPoints,
  windowTooLong,
} from '../../parameters/explainParameters.ts';
import { idOf, malformedId } from '../../parameters/id.ts';
import { imeiError } from '../../parameters/imei.ts';
import { parameterError, readChoice } from '../../parameters/parameter.ts';
import { WINDOW_MESSAGE } from '../../parameters/parameters.ts';
import type { Call, Route } from '../route.ts';
import { ExplainBody, type OpenAnswer } from './explainBody.ts';

export interface AreaExplainPorts {
  readonly areas: AreaCatalog;
  readonly fleet: Fleet;
  readonly explanations: Explanations;
  /** By account. */
  readonly turns: WorkTurns<string | number>;
}

/** Why an area reported what it did of a device in a time, and nothing else. Changes nothing. */
export function areaExplainRoute(ports: AreaExplainPorts): Route {
  return {
    method: 'GET',
    path: '/areas/:id/explain',
    scopes: scopeMask('read_areas', 'read_history'),
    needsAllScopes: true,
    versions: ['v3'],
    describe: EXPLAIN_AREA,
    handle: (call) => explain(ports, call),
  };
}

function explain(ports: AreaExplainPorts, call: Call): Answer {
  const { areas, fleet, explanations, turns } = ports;
  const { caller, query, nowMs } = call;
  const areaId = idOf(call.params);
  if (areaId === null) return malformedId();
  const imei = query['device'] ?? '';
  const error = imeiError(imei);
  if (error !== null) return error;
  const window = explainWindowOf(query, nowMs);
  if (window === 'invalid') return errorAnswer('BAD_REQUEST', WINDOW_MESSAGE);
  const steps = readChoice(query, STEPS);
  if (steps === 'invalid') return parameterError(STEPS);
  if ('excessMs' in window) return errorAnswer('BAD_REQUEST', windowTooLong(window.excessMs));
  const area = areas.area(caller.worldIds, areaId);
  if (area === undefined) return errorAnswer('NOT_FOUND');
  const device = fleet.device(caller.worldIds, imei);
  if (device === undefined) return errorAnswer('DEVICE_NOT_FOUND');

  const { id: deviceId, name, plate } = device.fields;
  const retainedFromMs = nowMs - caller.historyDays * DAY_MS;
  const request: ExplainRequest = {
    ...{ accountId: caller.accountId, worldIds: caller.worldIds, areaId, deviceId, imei },
    names: { device: name ?? plate ?? imei, area: area.definition.name },
    fromMs: Math.max(window.fromMs, retainedFromMs),
    toMs: window.toMs,
    trimmedToDays: window.fromMs < retainedFromMs ? caller.historyDays : null,
    withSteps: steps === 'true',
  };
  const body = new ExplainBody(() => open(explanations, request), turns, caller.accountId);
  return { status: 200, body };
}

async function open(explanations: Explanations, request: ExplainRequest): Promise<OpenAnswer> {
  const outcome = await explanations.open(request);
  if (outcome.kind === 'explained') {
    const { explanation, points, close } = outcome;
    const window = { from: formatIso(request.fromMs), to: formatIso(request.toMs) };
    return { explanation, meta: { window, points }, close };
  }
  outcome.close();
  switch (outcome.kind) {
    case 'area_gone':
      throw new NotBegun(errorAnswer('NOT_FOUND'));
    case 'device_gone':
      throw new NotBegun(errorAnswer('DEVICE_NOT_FOUND'));
    case 'too_many_points':
      throw new NotBegun(errorAnswer('BAD_REQUEST', tooManyPoints(explanations.pointsMax)));
    case 'too_much_work':
      throw new NotBegun(errorAnswer('BAD_REQUEST', TOO_MUCH_EXPLAIN_WORK));
  }
}
