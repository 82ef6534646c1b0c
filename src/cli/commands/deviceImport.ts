import { open } from 'node:fs/promises';
import { fail, ok, type Result } from '../../base/result.ts';
import { hasCode } from '../../store/embeddedProcess.ts';
import { defineCommand } from '../command.ts';
import type { CommandContext } from '../context.ts';
import { COLUMNS } from '../devicePatch.ts';
import { DeviceRows } from '../deviceRows.ts';
import { IMPORT_CHUNK, type ImportCounts, type ImportLine, importDevices } from '../importDevices.ts';
import { operand, required } from '../option.ts';
import { parseEmail } from '../parseText.ts';
import { paced, type Session } from '../session.ts';
import { readLines } from '../textLines.ts';

/** A file with more wrong lines than this is another file than the caller thinks. */
const REJECTED_MAX = 100_000;
const PROGRESS_EVERY = 10_000;

export const deviceImport = defineCommand({
  name: 'device:import',
  summary:
    'Creates and updates devices from a file: CSV with a header line, or NDJSON (one object on each line).',
  options: {
    email: required('E', 'the address of the account', parseEmail),
    file: operand('FILE', 'the file; - reads stdin', (text) => (text === '' ? fail('is empty') : ok(text))),
  },
  notes: [
    `Columns: ${COLUMNS.join(', ')}. Only imei is needed; any other column is refused.`,
    'A missing column leaves its field alone on an update. An empty cell (null in NDJSON) clears it.',
    'groups: separated by ; in CSV, an array in NDJSON. organization: true makes the device the',
    "organization's, false or empty the account's own.",
    'Of several lines with one IMEI the later ones update the earlier. A wrong line is reported and passed over:',
    'it costs no other. line counts from 1 with the header. Importing a file again does no harm.',
    'Devices beyond what the plan of the account allows are rejected, by line.',
  ],
  run: (context, { email, file }) =>
    context.withSession(async (session) => {
      const source = file === '-' ? ok(context.stdin) : await openFile(file);
      if (!source.ok) return source;
      return importFile(context, paced(session), email, source.value);
    }),
});

interface Totals {
  created: number;
  updated: number;
  rejected: ImportCounts['rejected'][number][];
}

async function importFile(
  context: CommandContext,
  session: Session,
  email: string,
  source: AsyncIterable<Uint8Array>,
): Promise<Result<Totals, string>> {
  const totals: Totals = { created: 0, updated: 0, rejected: [] };
  let chunk: ImportLine[] = [];
  let saidAt = 0;
  for await (const rows of readRows(source)) {
    if (!rows.ok) return fail(`${rows.error}${soFar(totals)}`);
    for (const { line, patch } of rows.value) {
      if (patch.ok) chunk.push({ line, patch: patch.value });
      else totals.rejected.push({ line, message: patch.error });
      if (chunk.length < IMPORT_CHUNK) continue;
      const outcome = await write(session, email, chunk, totals);
      if (!outcome.ok) return outcome;
      chunk = [];
      if (context.interrupted.aborted) return fail(`interrupted${soFar(totals)}`);
    }
    if (totals.rejected.length > REJECTED_MAX)
      return fail(`more than ${REJECTED_MAX} lines are wrong${soFar(totals)}`);
    saidAt = report(context, totals, saidAt);
  }
  const outcome = await write(session, email, chunk, totals);
  if (!outcome.ok) return outcome;
  totals.rejected.sort((a, b) => a.line - b.line);
  return ok(totals);
}

async function* readRows(source: AsyncIterable<Uint8Array>) {
  const reader = new DeviceRows();
  for await (const lines of readLines(source)) yield reader.push(lines);
  yield reader.end();
}

/** Also without lines: then it says only whether there is such an account. */
async function write(
  session: Session,
  email: string,
  chunk: readonly ImportLine[],
  totals: Totals,
): Promise<Result<null, string>> {
  const outcome = await importDevices(session, email, chunk);
  if (!outcome.ok) return outcome;
  totals.created += outcome.value.created;
  totals.updated += outcome.value.updated;
  totals.rejected.push(...outcome.value.rejected);
  return ok(null);
}

function report(context: CommandContext, { created, updated, rejected }: Totals, saidAt: number): number {
  const lines = created + updated + rejected.length;
  if (lines - saidAt < PROGRESS_EVERY) return saidAt;
  context.say(`${lines} lines: ${created} created, ${updated} updated, ${rejected.length} rejected`);
  return lines;
}

function soFar({ created, updated }: Totals): string {
  if (created + updated === 0) return '; nothing was imported';
  return `; ${created} created and ${updated} updated before that stay. Importing again does no harm`;
}

async function openFile(path: string): Promise<Result<AsyncIterable<Uint8Array>, string>> {
  try {
    const file = await open(path);
    if (!(await file.stat()).isDirectory()) return ok(file.createReadStream());
    await file.close();
    return fail(`${path} is a folder`);
  } catch (error) {
    if (!hasCode(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'EPERM')) throw error;
    return fail(hasCode(error, 'ENOENT', 'ENOTDIR') ? `there is no file ${path}` : `${path} may not be read`);
  }
}
