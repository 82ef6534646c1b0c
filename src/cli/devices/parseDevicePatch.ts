import type { DevicePatch } from '../../devices/importDevices.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { parseGroups, parseImei, parseName } from '../optionParsers.ts';

/** The columns of an import file. */
export const COLUMNS = ['imei', 'name', 'plate', 'device_model', 'groups', 'organization'];

const TEXTS = [
  ['name', 'name'],
  ['plate', 'plate'],
  ['device_model', 'model'],
] as const;

/** Takes values as JSON has them, by column. null clears a field; for `organization` it means false. */
export function parseDevicePatch(fields: ReadonlyMap<string, unknown>): Result<DevicePatch, string> {
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
export function fieldsOfCells(columns: readonly string[], cells: readonly string[]): Map<string, unknown> {
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

const NOT_UTF8 = 'holds bytes that are no UTF-8';

/** What the decoder puts in the place of such bytes. */
function hasReplacement(text: string): boolean {
  return text.includes('\ufffd');
}
