import { scopeMask } from '../../access/scopes.ts';
import { type Answer, errorAnswer, validationAnswer } from '../../http/answer.ts';
import { notJsonAnswer } from '../../http/jsonBody.ts';
import { parameterError, readChoice } from '../../http/parameter.ts';
import { DRY_RUN } from '../../http/parameters.ts';
import type { ChangePorts } from '../../http/ports.ts';
import type { Call, Route } from '../../http/route.ts';
import { Overloaded } from '../../lib/fairSemaphore.ts';
import { IMPORT_AREAS } from '../areaWriteOperations.ts';
import { importAnswer } from './importAnswer.ts';
import { dryRunImport, importAreas } from './importAreas.ts';
import { ImportOverload, type ImportPlanner, ImportTooLarge } from './importPlanner.ts';
import { MAX_IMPORT_VALUES, type PlanReply } from './planBody.ts';

const MAX_BODY_BYTES = 32 * 1024 * 1024;
const DEADLINE_MS = 120_000;

export interface AreaImportPorts extends ChangePorts {
  readonly planner: ImportPlanner;
}

/** Many areas in one call, saved in one transaction; with dry_run only what would happen. */
export function areaImportRoute(ports: AreaImportPorts): Route {
  return {
    method: 'POST',
    path: '/areas/import',
    scopes: scopeMask('write_areas'),
    versions: ['v3'],
    maxBodyBytes: MAX_BODY_BYTES,
    takesPieces: true,
    deadlineMs: DEADLINE_MS,
    describe: IMPORT_AREAS,
    handle: (call) => run(ports, call),
  };
}

async function run({ writes, planner }: AreaImportPorts, call: Call): Promise<Answer> {
  const queryDryRun = readChoice(call.query, DRY_RUN);
  if (queryDryRun === 'invalid') return parameterError(DRY_RUN);
  if (call.body?.isJson !== true) return notJsonAnswer(call.body);
  const plan = await planOf(planner, call.caller.accountId, call.body.pieces);
  if ('status' in plan) return plan;
  if (!plan.ok) {
    return plan.error === 'too_many_values'
      ? errorAnswer('PAYLOAD_TOO_LARGE', TOO_MANY_VALUES)
      : validationAnswer(plan.error);
  }
  const dryRun = queryDryRun === 'true' || plan.value.dryRun;
  const ports = writes(call.caller.accountId);
  const report = await (dryRun ? dryRunImport : importAreas)(ports, call.caller, plan.value);
  return importAnswer(report, dryRun);
}

const TOO_MANY_VALUES = `the body holds more than ${MAX_IMPORT_VALUES} values and names`;

async function planOf(
  planner: ImportPlanner,
  accountId: number,
  pieces: readonly Buffer[],
): Promise<PlanReply | Answer> {
  try {
    return await planner.plan(accountId, pieces);
  } catch (error) {
    if (error instanceof ImportTooLarge) return errorAnswer('PAYLOAD_TOO_LARGE', error.message);
    if (error instanceof ImportOverload || error instanceof Overloaded)
      return errorAnswer('SERVICE_UNAVAILABLE', `${error.message}; try again shortly`);
    throw error;
  }
}
