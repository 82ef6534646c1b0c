import { scopeMask } from '../access/scopes.ts';
import type { AreaCatalog } from '../areas/areaCatalog.memory.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import { imeiError } from '../devices/imeiParameter.ts';
import { type Answer, errorAnswer } from '../http/answer.ts';
import { idOf, malformedId } from '../http/id.ts';
import { NotBegun } from '../http/notBegun.ts';
import { parameterError, readChoice } from '../http/parameter.ts';
import { WINDOW_MESSAGE } from '../http/parameters.ts';
import type { Call, Route } from '../http/route.ts';
import { DAY_MS } from '../lib/durations.ts';
import { formatIso } from '../lib/isoTime.ts';
import type { WorkTurns } from '../lib/workTurns.ts';
import { ExplainBody, type OpenAnswer } from './explainBody.ts';
import { EXPLAIN_AREA } from './explainOperation.ts';
import {
  explainWindowOf,
  STEPS,
  TOO_MUCH_EXPLAIN_WORK,
  tooManyPoints,
  windowTooLong,
} from './explainParameters.ts';
import type { ExplainRequest } from './explainRequest.ts';
import type { Explanations } from './explanations.ts';

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
