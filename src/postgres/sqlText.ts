import { invariant } from '../lib/invariant.ts';
import { formatIso } from '../lib/isoTime.ts';

/** A part of a statement: the text between its values, and the values. */
export interface SqlText {
  readonly strings: readonly string[];
  readonly values: readonly unknown[];
}

/** Text that becomes part of a statement unchanged. */
export class RawSql {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** A name of a table, column or database, quoted. */
export function identifier(name: string): RawSql {
  return new RawSql(`"${name.replaceAll('"', '""')}"`);
}

/** Ids as text, comma separated, for a copy, which takes no parameters. */
export function integers(ids: readonly number[]): RawSql {
  invariant(ids.every(Number.isSafeInteger), 'an id is an integer');
  return new RawSql(ids.join(','));
}

/** A time, for a copy. */
export function instant(ms: number): RawSql {
  return new RawSql(`'${formatIso(ms)}'::timestamptz`);
}

/**
 * A Postgres array literal, passed as one text parameter and cast in the statement: `${arrayLiteral(ids)}::bigint[]`.
 * Only for values that need no quoting: numbers, booleans, null, IMEIs and words of a fixed list.
 */
export function arrayLiteral(values: readonly (number | boolean | string | null)[]): string {
  return `{${values.map((value) => value ?? 'null').join(',')}}`;
}

/**
 * The name of a prepared statement whose text depends on which filters are set (not null): each combination has its own
 * name. Postgres cuts names at 63 bytes.
 */
export function shapeName(name: string, filters: object): string {
  const set = Object.entries(filters).filter(([, value]) => value !== null);
  return [name, ...set.map(([filter]) => filter)].join('_');
}

/**
 * The text of a statement and its numbered parameters (`$1`, `$2`, …). A value that is itself SQL becomes part of the
 * text. Every other value becomes a parameter, so no value is ever read as SQL.
 */
export function compileSql(
  statement: SqlText,
  isSqlText: (value: unknown) => value is SqlText,
): { text: string; values: unknown[] } {
  const values: unknown[] = [];
  const textOf = ({ strings, values: own }: SqlText): string =>
    strings.reduce((text, string, i) => {
      const value = own[i - 1];
      if (isSqlText(value)) return text + textOf(value) + string;
      if (value instanceof RawSql) return text + value.text + string;
      return `${text}$${values.push(value)}${string}`;
    });
  return { text: textOf(statement), values };
}

/** `(a, b) values ($1, $2), …` for an insert. All rows have the same keys. */
export function insertRows(rows: readonly Readonly<Record<string, unknown>>[]): SqlText {
  const names = Object.keys(rows[0] ?? {});
  const strings: string[] = [];
  const values: unknown[] = [];
  let text = `(${names.map((name) => identifier(name).text).join(', ')}) values (`;
  rows.forEach((row, r) => {
    names.forEach((name, n) => {
      if (n > 0) text += ', ';
      else if (r > 0) text += '), (';
      strings.push(text);
      values.push(row[name]);
      text = '';
    });
  });
  strings.push(`${text})`);
  return { strings, values };
}

/** `a = $1, b = $2` for an update. */
export function assignments(row: Readonly<Record<string, unknown>>): SqlText {
  const names = Object.keys(row);
  const strings = names.map((name, n) => `${n > 0 ? ', ' : ''}${identifier(name).text} = `);
  return { strings: [...strings, ''], values: names.map((name) => row[name]) };
}

/** `a union all b`. */
export function unionAll(queries: readonly SqlText[]): SqlText {
  return { strings: ['', ...queries.slice(1).map(() => ' union all '), ''], values: queries };
}
