import type { FieldError } from '../../lib/fieldError.ts';
import { parseJson } from '../../lib/parseJson.ts';
import { fail, type Result } from '../../lib/result.ts';
import type { Steps } from '../../lib/workTurns.ts';
import { AREA_ERRORS } from '../draft/areaErrors.ts';
import { type ImportPlan, planImport } from './importPlan.ts';

/** What an import body asks for, what is wrong with it, or that it holds too much. Plain data: it crosses between processes. */
export type PlanReply = Result<ImportPlan, readonly FieldError[] | 'too_many_values'>;

/** Four times the values of 200 areas of 2000 points. */
export const MAX_IMPORT_VALUES = 5_000_000;

/** The plan of a body of at most `maxValues` values. Parsing it is one step, whatever its size. */
export function* planBody(bytes: Uint8Array, maxValues: number): Steps<PlanReply> {
  const json = parseJson(bytes, maxValues);
  if (!json.ok) return fail(json.error === 'too_many_values' ? json.error : [AREA_ERRORS.bodyInvalid]);
  yield;
  return yield* planImport(json.value);
}
