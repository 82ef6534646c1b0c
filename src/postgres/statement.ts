import { compileSql, type SqlText } from './sqlText.ts';

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
      const { text, values } = compileSql(this, isSqlText);
      // The type of the rows is what the caller says: nothing can check it before Postgres answers.
      this.#answer = this.#run(text, values, this.#name) as Promise<unknown> as Promise<Rows<T>>;
    }
    return this.#answer;
  }
}

/** True for SQL inside a template, as opposed to a value. */
export function isSqlText(value: unknown): value is SqlText {
  return (
    value instanceof Statement ||
    (typeof value === 'object' && value !== null && 'strings' in value && 'values' in value)
  );
}
