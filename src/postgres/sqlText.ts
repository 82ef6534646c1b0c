import { invariant } from '../lib/errors.ts';
import { formatIso } from '../lib/time.ts';

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

/** The rows of a statement, and how many it read or changed. */
export type Rows<T> = T & { readonly count: number };

/** Sends text with its parameters, as a prepared statement if it has a name. */
export type Run = (
  text: string,
  values?: readonly unknown[],
  name?: string,
) => Promise<Rows<readonly object[]>>;

/** A statement that is sent when it is first awaited, and only once. */
export class Statement<T> implements Promise<Rows<T>>, SqlText {
  readonly [Symbol.toStringTag] = 'Statement';
  readonly strings: readonly string[];
  readonly values: readonly unknown[];
  readonly #run: Run;
  #name: string | undefined;
  #answer: Promise<Rows<T>> | null = null;

  constructor(run: Run, { strings, values }: SqlText) {
    this.#run = run;
    this.strings = strings;
    this.values = values;
  }

  /**
   * Makes this a prepared statement: each session parses it once. Postgres reuses its plan where a plan without the
   * values costs as little as one with them. Worth it for a statement that runs often and takes longer to plan than to
   * run. Not for a table that may grow from empty to large within a minute: the plan is made again only after the next
   * analyze.
   *
   * The text must always be the same under one name, else the driver throws. It must list its columns: a prepared
   * `select *` fails once a later version of the schema adds a column.
   */
  named(name: string): this {
    this.#name = name;
    return this;
  }

  // biome-ignore lint/suspicious/noThenProperty: a statement is awaited like a promise, but only sent then
  then<A = Rows<T>, B = never>(
    onAnswer?: ((rows: Rows<T>) => A | PromiseLike<A>) | null,
    onError?: ((error: unknown) => B | PromiseLike<B>) | null,
  ): Promise<A | B> {
    return this.#send().then(onAnswer, onError);
  }

  catch<B = never>(onError?: ((error: unknown) => B | PromiseLike<B>) | null): Promise<Rows<T> | B> {
    return this.#send().catch(onError);
  }

  finally(onSettled?: (() => void) | null): Promise<Rows<T>> {
    return this.#send().finally(onSettled);
  }

  #send(): Promise<Rows<T>> {
    if (this.#answer === null) {
      const { text, values } = compileSql(this);
      // The type of the rows is what the caller says: nothing can check it before Postgres answers.
      this.#answer = this.#run(text, values, this.#name) as Promise<unknown> as Promise<Rows<T>>;
    }
    return this.#answer;
  }
}

/**
 * The text of a statement and its numbered parameters (`$1`, `$2`, …). A value that is itself SQL becomes part of the
 * text. Every other value becomes a parameter, so no value is ever read as SQL.
 */
export function compileSql(statement: SqlText): { text: string; values: unknown[] } {
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

/** True for SQL inside a template, as opposed to a value. */
function isSqlText(value: unknown): value is SqlText {
  return (
    value instanceof Statement ||
    (typeof value === 'object' && value !== null && 'strings' in value && 'values' in value)
  );
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
 * The name of a prepared statement whose text depends on which filters are set (not null): each combination has its own
 * name. Postgres cuts names at 63 bytes.
 */
export function shapeName(name: string, filters: object): string {
  const set = Object.entries(filters).filter(([, value]) => value !== null);
  return [name, ...set.map(([filter]) => filter)].join('_');
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
