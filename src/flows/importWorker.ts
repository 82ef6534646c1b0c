import { parentPort } from 'node:worker_threads';
import { FIELD_ERRORS, type FieldError } from '../areas/fieldError.ts';
import { type ImportPlan, planImport } from '../areas/importPlan.ts';
import { invariant } from '../base/invariant.ts';
import { parseJson } from '../base/parseJson.ts';
import { fail, type Result } from '../base/result.ts';

/** The answer to the bytes of a body. Plain data: both cross between threads. */
export type PlanReply = Result<ImportPlan, readonly FieldError[]>;

invariant(parentPort !== null, 'this file is the entry of a worker thread');
const port = parentPort;
port.on('message', (bytes: Uint8Array) => port.postMessage(planOf(bytes)));

function planOf(bytes: Uint8Array): PlanReply {
  const body = parseJson(bytes);
  if (!body.ok) return fail([FIELD_ERRORS.bodyInvalid]);
  const steps = planImport(body.value);
  for (;;) {
    const step = steps.next();
    if (step.done === true) return step.value;
  }
}
