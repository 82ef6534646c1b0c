import { CsvError, parse } from 'csv-parse/sync';
import type { DevicePatch, ImportCounts, ImportError, ImportRow } from '../../devices/importDevices.ts';
import { importDevices, REJECTED_MAX } from '../../devices/importDevices.ts';
import { isJsonObject, parseJsonText } from '../../lib/parseText.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import type { CommandContext, CommandOutcome } from '../command.ts';
import { defineCommand, required, unknownAccount } from '../command.ts';
import { FILE, openFile, readLines, type TextLine } from '../input.ts';
import { parseEmail, parseGroups, parseImei, parseName } from '../optionParsers.ts';
import { paced, type Session } from '../session.ts';

const PROGRESS_EVERY = 10_000;
/** The columns of an import file. */
const COLUMNS = ['imei', 'name', 'plate', 'device_model', 'groups', 'organization'];

export const deviceImport = defineCommand({
  name: 'device:import',
  summary: 'Creates and updates devices from a CSV or NDJSON file.',
  options: {
    email: required('E', 'the address of the account', parseEmail),
    file: FILE,
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
      const source = await openFile(file, context.stdin);
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

/**
 * Reads the rows of an import file from its lines as they come. A first line that opens an object makes it NDJSON,
 * else it is the header of a CSV. The error is about the file as a whole: nothing more can be read from it.
 */
export class ImportRows {
  #format: 'unknown' | 'ndjson' | 'csv' = 'unknown';
  #columns: readonly string[] = [];
  readonly #records = new CsvRecords();

  push(lines: readonly TextLine[]): Result<ImportRow[], string> {
    const first = lines.findIndex(({ text }) => text?.trim() !== '');
    if (this.#format === 'unknown') {
      if (first < 0) return ok([]);
      const start = lines[first]?.text?.trimStart() ?? '';
      if (start.startsWith('['))
        return fail('the file is a JSON array; write one object on each line instead (NDJSON)');
      this.#format = start.startsWith('{') ? 'ndjson' : 'csv';
    }
    if (this.#format === 'ndjson') return ok(lines.flatMap(readObject));
    return this.#readRecords(this.#records.push(lines));
  }

  end(): Result<ImportRow[], string> {
    if (this.#format === 'unknown') return fail('the file is empty');
    const rows = this.#readRecords(this.#records.end());
    return rows.ok && this.#format === 'csv' && this.#columns.length === 0 ? fail('the file is empty') : rows;
  }

  #readRecords(records: readonly CsvRecord[]): Result<ImportRow[], string> {
    let rest = records;
    const [first] = records;
    if (this.#columns.length === 0 && first !== undefined) {
      const columns = readHeader(first);
      if (!columns.ok) return columns;
      this.#columns = columns.value;
      rest = records.slice(1);
    }
    return ok(rest.map((record) => ({ line: record.line, patch: readRecord(record, this.#columns) })));
  }
}

function readHeader({ cells }: CsvRecord): Result<readonly string[], string> {
  if (!cells.ok) return fail(`the header cannot be read: ${cells.error}`);
  const columns = cells.value.map((cell) => cell.trim().toLowerCase());
  const unknown = columns.filter((column) => !COLUMNS.includes(column));
  if (unknown.length > 0) {
    return fail(`the header has unknown columns: ${unknown.map(quote).join(', ')}; ${KNOWN_COLUMNS}`);
  }
  if (new Set(columns).size < columns.length) return fail('the header has a column twice');
  return columns.includes('imei') ? ok(columns) : fail('the header has no column imei');
}

function readRecord({ cells }: CsvRecord, columns: readonly string[]): Result<DevicePatch, string> {
  if (!cells.ok) return cells;
  if (cells.value.length !== columns.length) {
    return fail(`has ${cells.value.length} values, the header has ${columns.length} columns`);
  }
  return parseDevicePatch(fieldsOfCells(columns, cells.value));
}

function readObject({ number: line, text }: TextLine): ImportRow[] {
  if (text?.trim() === '') return [];
  return [{ line, patch: text === null ? fail('the line is too long') : parseObject(text) }];
}

function parseObject(text: string): Result<DevicePatch, string> {
  const value = parseJsonText(text);
  if (!isJsonObject(value)) return fail('is not a JSON object');
  const fields = new Map<string, unknown>(Object.entries(value));
  const unknown = [...fields.keys()].filter((name) => !COLUMNS.includes(name));
  if (unknown.length > 0)
    return fail(`has unknown fields: ${unknown.map(quote).join(', ')}; ${KNOWN_COLUMNS}`);
  return parseDevicePatch(fields);
}

const KNOWN_COLUMNS = `known are ${COLUMNS.join(', ')}`;

/** Shortened, so that the message stays readable even for a file of another kind. */
function quote(name: string): string {
  return JSON.stringify(name.slice(0, 40));
}

/** One record of a CSV text (RFC 4180), or why there is none at this line. */
export interface CsvRecord {
  /** The physical line on which it begins. */
  readonly line: number;
  readonly cells: Result<readonly string[], string>;
}

/** A quote that is not closed within this many lines is taken for a stray one: only its own line is lost. */
const RECORD_MAX_LINES = 20;

/**
 * Reads records from lines as they come. A broken record costs its own line and none of the lines after it, so the
 * parser is given a few lines at a time and starts again behind an error. Blank lines are skipped.
 */
export class CsvRecords {
  #waiting: TextLine[] = [];

  /** The records that these lines complete; a record whose quote is open waits for more. */
  push(lines: readonly TextLine[]): CsvRecord[] {
    return this.#read([...this.#waiting, ...lines], false);
  }

  /** The records that are still waiting after the last line. */
  end(): CsvRecord[] {
    return this.#read(this.#waiting, true);
  }

  #read(lines: readonly TextLine[], isEnd: boolean): CsvRecord[] {
    const records: CsvRecord[] = [];
    let at = 0;
    while (at < lines.length) {
      const block = readBlock(lines.slice(at, at + RECORD_MAX_LINES));
      records.push(...block.records);
      at += block.used;
      const first = lines[at];
      if (block.error === null || first === undefined) continue;
      const mayBeCompleted = block.error === OPEN && !isEnd && lines.length - at < RECORD_MAX_LINES;
      if (mayBeCompleted) break;
      if (block.used > 0) continue; // the error may be one only because the block ends
      records.push({ line: first.number, cells: fail(block.error) });
      at++;
    }
    this.#waiting = lines.slice(at);
    return records;
  }
}

interface Block {
  readonly records: CsvRecord[];
  /** How many lines they take. */
  readonly used: number;
  /** Why the record behind them cannot be read. */
  readonly error: string | null;
}

const OPEN = 'a quote is opened and never closed';
const STRAY = 'a quote stands in the middle of a value, or text follows its end';

function readBlock(lines: readonly TextLine[]): Block {
  if (lines[0]?.text === null) return { records: [], used: 0, error: 'the line is too long' };
  const tooLongAt = lines.findIndex(({ text }) => text === null);
  const readable = tooLongAt < 0 ? lines : lines.slice(0, tooLongAt);
  const records: CsvRecord[] = [];
  let used = 0;
  const take = (cells: string[]): null => {
    const isBlank = cells.length === 1 && cells[0]?.trim() === '';
    if (!isBlank) records.push({ line: readable[used]?.number ?? 0, cells: ok(cells) });
    used += cells.join('').split('\n').length;
    return null;
  };
  try {
    const text = readable.map((line) => `${line.text}\n`).join('');
    parse(text, { record_delimiter: '\n', relax_column_count: true, on_record: take });
    return { records, used, error: null };
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    return { records, used, error: error.code === 'CSV_QUOTE_NOT_CLOSED' ? OPEN : STRAY };
  }
}

const TEXTS = [
  ['name', 'name'],
  ['plate', 'plate'],
  ['device_model', 'model'],
] as const;

/** Takes values as JSON has them, by column. null clears a field; for `organization` it means false. */
function parseDevicePatch(fields: ReadonlyMap<string, unknown>): Result<DevicePatch, string> {
  const imei = asText(fields.get('imei') ?? '', parseImei);
  if (!imei.ok) return fail(`imei ${imei.error}`);
  const patch: { -readonly [K in keyof DevicePatch]: DevicePatch[K] } = { imei: imei.value };
  for (const [column, field] of TEXTS) {
    if (!fields.has(column)) continue;
    const value = fields.get(column);
    const text = value === null ? ok(null) : asText(value, parseName);
    if (!text.ok) return fail(`${column} ${text.error}`);
    patch[field] = text.value;
  }
  if (fields.has('groups')) {
    const groups = asGroups(fields.get('groups'));
    if (!groups.ok) return fail(`groups ${groups.error}`);
    patch.groups = groups.value;
  }
  if (fields.has('organization')) {
    const organization = fields.get('organization') ?? false;
    if (typeof organization !== 'boolean') return fail('organization is neither true nor false');
    patch.organization = organization;
  }
  return ok(patch);
}

/** The values of a CSV record as JSON would have them: an empty cell is null, groups are separated by `;`. */
function fieldsOfCells(columns: readonly string[], cells: readonly string[]): Map<string, unknown> {
  return new Map(columns.map((column, index) => [column, valueOfCell(column, (cells[index] ?? '').trim())]));
}

function valueOfCell(column: string, cell: string): unknown {
  if (cell === '') return null;
  if (column === 'groups') return cell.split(';');
  if (column === 'organization' && /^(true|false)$/i.test(cell)) return cell.toLowerCase() === 'true';
  return cell;
}

function asGroups(value: unknown): Result<readonly string[], string> {
  if (value === null) return ok([]);
  if (!Array.isArray(value) || !value.every((entry) => typeof entry === 'string'))
    return fail('must be an array of strings');
  return value.some(hasReplacement) ? fail(NOT_UTF8) : parseGroups(value);
}

function asText(value: unknown, parse: (text: string) => Result<string, string>): Result<string, string> {
  if (typeof value !== 'string') return fail('must be a JSON string');
  return hasReplacement(value) ? fail(NOT_UTF8) : parse(value);
}

const NOT_UTF8 = 'holds bytes that are not UTF-8';

/** The decoder replaces such bytes with this character. */
function hasReplacement(text: string): boolean {
  return text.includes('\ufffd');
}
