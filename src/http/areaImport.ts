import { scopeMask } from '../access/scopes.ts';
import { FIELD_ERRORS } from '../areas/fieldError.ts';
import { type ImportReport, importAreas, rehearseImport } from '../flows/importAreas.ts';
import { ImportOverload, type ImportPlanner, ImportTooLarge } from '../flows/importPlanner.ts';
import type { WritePorts } from '../flows/writeWorlds.ts';
import { type Answer, errorAnswer, validationAnswer } from './answer.ts';
import { ERRORS } from './errors.ts';
import { isBlank } from './query.ts';
import type { Call, Route } from './route.ts';

const MAX_BODY_BYTES = 32 * 1024 * 1024;
const DEADLINE_MS = 120_000;

export interface AreaImportPorts extends WritePorts {
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
    deadlineMs: DEADLINE_MS,
    handle: (call) => run(ports, call),
  };
}

async function run(ports: AreaImportPorts, call: Call): Promise<Answer> {
  const queryDryRun = dryRunOf(call.query['dry_run']);
  if (queryDryRun === 'invalid') return errorAnswer('BAD_REQUEST', 'dry_run must be true or false');
  if (call.body?.isJson !== true) return validationAnswer([FIELD_ERRORS.bodyInvalid]);
  const plan = await planOf(ports.planner, call.body.bytes);
  if ('status' in plan) return plan;
  if (!plan.ok) return validationAnswer(plan.error);
  const dryRun = queryDryRun || plan.value.dryRun;
  const report = await (dryRun ? rehearseImport : importAreas)(ports, call.caller, plan.value);
  return reportAnswer(report, dryRun);
}

async function planOf(
  planner: ImportPlanner,
  bytes: Buffer,
): Promise<Awaited<ReturnType<ImportPlanner['plan']>> | Answer> {
  try {
    return await planner.plan(bytes);
  } catch (error) {
    if (error instanceof ImportTooLarge) return errorAnswer('PAYLOAD_TOO_LARGE', error.message);
    if (error instanceof ImportOverload)
      return errorAnswer('SERVICE_UNAVAILABLE', `${error.message}; try again shortly`);
    throw error;
  }
}

function reportAnswer(report: ImportReport, dryRun: boolean): Answer {
  const valid = report.created.length + report.updated.length;
  const data = { dry_run: dryRun, valid, ...report };
  if (valid > 0 || dryRun) {
    const status = !dryRun && report.created.length > 0 ? 201 : 200;
    return { status, body: JSON.stringify({ data, meta: {} }) };
  }
  const [status] = ERRORS.VALIDATION_ERROR;
  const error = { code: 'VALIDATION_ERROR', message: 'no feature made a valid area', details: [] };
  return { status, body: JSON.stringify({ error, data }) };
}

function dryRunOf(text: string | undefined): boolean | 'invalid' {
  if (text === undefined || isBlank(text) || text === 'false') return false;
  return text === 'true' ? true : 'invalid';
}
