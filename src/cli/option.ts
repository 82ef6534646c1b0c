import { fail, ok, type Result } from '../lib/result.ts';

/** One option, flag or operand of a command, and how its text becomes a value. */
export interface Option<T> {
  readonly kind: 'option' | 'flag' | 'operand';
  /** Names the value in the usage line: "E", "a,b"; empty for a flag. */
  readonly placeholder: string;
  readonly isOptional: boolean;
  readonly help: string;
  /** Takes undefined when it was not given. The error completes the sentence "--name …". */
  parse(text: string | undefined): Result<T, string>;
}

export type Options = Readonly<Record<string, Option<unknown>>>;

/** The values that a set of options gives, by their names. */
export type OptionValues<O> = { readonly [K in keyof O]: O[K] extends Option<infer T> ? T : never };

export type ParseText<T> = (text: string) => Result<T, string>;

export function required<T>(placeholder: string, help: string, parse: ParseText<T>): Option<T> {
  return { kind: 'option', placeholder, isOptional: false, help, parse: unlessMissing(parse) };
}

export function optional<T>(placeholder: string, help: string, parse: ParseText<T>): Option<T | undefined> {
  return {
    kind: 'option',
    placeholder,
    isOptional: true,
    help,
    parse: (text) => (text === undefined ? ok(undefined) : parse(text)),
  };
}

export function flag(help: string): Option<boolean> {
  return { kind: 'flag', placeholder: '', isOptional: true, help, parse: (text) => ok(text !== undefined) };
}

/** The one argument without a name. */
export function operand<T>(placeholder: string, help: string, parse: ParseText<T>): Option<T> {
  return { kind: 'operand', placeholder, isOptional: false, help, parse: unlessMissing(parse) };
}

function unlessMissing<T>(parse: ParseText<T>): Option<T>['parse'] {
  return (text) => (text === undefined ? fail('is missing') : parse(text));
}
