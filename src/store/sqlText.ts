import { invariant } from '../base/invariant.ts';

/** A piece of SQL with its values, not yet sent: the text between the values, and the values. */
export interface SqlText {
  readonly strings: readonly string[];
  readonly values: readonly unknown[];
}

/** Text that stands in a statement as it is. Only made by the functions below. */
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

/** Ids as text, comma separated, for a copy: that takes no parameters. */
export function integers(ids: readonly number[]): RawSql {
  invariant(ids.every(Number.isSafeInteger), 'an id is an integer');
  return new RawSql(ids.join(','));
}

/**
 * Text and numbered parameters of a statement (`$1`, `$2`, …). A value that is itself a piece of SQL is laid into
 * the text; every other one becomes a parameter, so no value is ever read as SQL.
 */
export function compileSql(
  piece: SqlText,
  isPiece: (value: unknown) => value is SqlText,
): { text: string; values: unknown[] } {
  const values: unknown[] = [];
  const lay = ({ strings, values: own }: SqlText): string =>
    strings.reduce((text, string, i) => {
      const value = own[i - 1];
      if (isPiece(value)) return text + lay(value) + string;
      if (value instanceof RawSql) return text + value.text + string;
      return `${text}$${values.push(value)}${string}`;
    });
  return { text: lay(piece), values };
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
export function unionAll(pieces: readonly SqlText[]): SqlText {
  return { strings: ['', ...pieces.slice(1).map(() => ' union all '), ''], values: pieces };
}
