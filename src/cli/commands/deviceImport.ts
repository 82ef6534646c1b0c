import type { ImportCounts } from '../../devices/importChunk.ts';
import { type ImportError, importDevices, REJECTED_MAX } from '../../devices/importDevices.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { type CommandOutcome, defineCommand } from '../command.ts';
import type { CommandContext } from '../context.ts';
import { ImportRows } from '../devices/importRows.ts';
import { COLUMNS } from '../devices/parseDevicePatch.ts';
import { openFile } from '../openFile.ts';
import { operand, required } from '../option.ts';
import { parseEmail } from '../optionParsers.ts';
import { paced, type Session } from '../session.ts';
import { readLines } from '../textLines.ts';
import { unknownAccount } from '../unknownAccount.ts';

const PROGRESS_EVERY = 10_000;

export const deviceImport = defineCommand({
  name: 'device:import',
  summary: 'Creates and updates devices from a CSV or NDJSON file.',
  options: {
    email: required('E', 'the address of the account', parseEmail),
    file: operand('FILE', 'the file; - reads stdin', (text) => (text === '' ? fail('is empty') : ok(text))),
  },
  notes: [
    'The file is CSV with a header line, or NDJSON (one object on each line).',
    `Columns: ${COLUMNS.join(', ')}. Only imei is needed; any other column is an error.`,
    'A missing column leaves its field alone on an update. An empty cell (null in NDJSON) clears it.',
    'groups: separated by ; in CSV, an array in NDJSON. organization: true makes the device the',
    "organization's, false or empty the account's own.",
    'Of several lines with one IMEI the later ones update the earlier. A wrong line is rejected and costs no other; so',
    'are devices beyond what the plan of the account allows. line counts from 1 with the header. The exit code is 1',
    'when lines were rejected. Importing a file again does no harm.',
  ],
  run: (context, { email, file }) =>
    context.withSession(async (session) => {
      const source = file === '-' ? ok(context.stdin) : await openFile(file);
      if (!source.ok) return source;
      return importFile(context, paced(session), email, source.value);
    }),
});

async function importFile(
  context: CommandContext,
  session: Session,
  email: string,
  source: AsyncIterable<Uint8Array>,
): Promise<CommandOutcome> {
  const { interrupted } = context;
  const onProgress = progressReport(context);
  const outcome = await importDevices(session, email, readRows(source), { interrupted, onProgress });
  if (!outcome.ok) return importError(outcome.error, email);
  const { rejected } = outcome.value;
  if (rejected.length === 0) return outcome;
  await context.print(outcome.value);
  const lines = rejected.length === 1 ? '1 line was' : `${rejected.length} lines were`;
  return fail(`${lines} rejected, each for the reason in the output; the other lines are imported`);
}

async function* readRows(source: AsyncIterable<Uint8Array>) {
  const reader = new ImportRows();
  for await (const lines of readLines(source)) yield reader.push(lines);
  yield reader.end();
}

function progressReport({ say }: CommandContext): (counts: ImportCounts) => void {
  let saidAt = 0;
  return ({ created, updated, rejected }) => {
    const lines = created + updated + rejected.length;
    if (lines - saidAt < PROGRESS_EVERY) return;
    saidAt = lines;
    say(`${lines} lines: ${created} created, ${updated} updated, ${rejected.length} rejected`);
  };
}

function importError(error: ImportError, email: string): Result<never, string> {
  const { created, updated } = error.counts;
  const soFar =
    created + updated === 0
      ? '; nothing was imported'
      : `; ${created} created and ${updated} updated before that stay. Importing again does no harm`;
  switch (error.reason) {
    case 'unknown_account':
      return unknownAccount(email);
    case 'unreadable':
      return fail(`${error.message}${soFar}`);
    case 'too_many_rejected':
      return fail(`more than ${REJECTED_MAX} lines are wrong${soFar}`);
    case 'interrupted':
      return fail(`interrupted${soFar}`);
  }
}
