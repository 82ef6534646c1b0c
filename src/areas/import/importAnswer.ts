import type { TextAnswer } from '../../http/answer.ts';
import { ERRORS } from '../../http/errors.ts';
import type { ImportReport } from './importAreas.ts';

/**
 * The answer to an import: 200 for a dry run or for updates only, 201 when an area was created, 422 when none was
 * valid; then the report is beside the error.
 */
export function importAnswer(report: ImportReport, dryRun: boolean): TextAnswer {
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
