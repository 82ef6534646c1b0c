import type { DevicePatch } from '../../devices/devicePatch.ts';
import type { ImportRow } from '../../devices/importDevices.ts';
import { isJsonObject } from '../../lib/jsonObject.ts';
import { parseJsonText } from '../../lib/parseJson.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import type { TextLine } from '../textLines.ts';
import { type CsvRecord, CsvRecords } from './csvRecords.ts';
import { COLUMNS, fieldsOfCells, parseDevicePatch } from './parseDevicePatch.ts';

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
  if (!isJsonObject(value)) return fail('is no JSON object');
  const fields = new Map<string, unknown>(Object.entries(value));
  const unknown = [...fields.keys()].filter((name) => !COLUMNS.includes(name));
  if (unknown.length > 0)
    return fail(`has unknown fields: ${unknown.map(quote).join(', ')}; ${KNOWN_COLUMNS}`);
  return parseDevicePatch(fields);
}

const KNOWN_COLUMNS = `known are ${COLUMNS.join(', ')}`;

/** Shortened, so that a file that is no such file at all still gives a readable message. */
function quote(name: string): string {
  return JSON.stringify(name.slice(0, 40));
}
