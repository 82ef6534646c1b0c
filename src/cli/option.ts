import { fail, ok, type Result } from '../base/result.ts';

/** One option, flag or operand of a command, and how its text becomes a value. */
export interface Option<T> {
  readonly kind: 'option' | 'flag' | 'operand';
  /** What stands for the value in the usage line: "E", "a,b"; empty for a flag. */
  readonly placeholder: string;
  readonly help: string;
  usage(name: string): string;
  /** undefined when it was not given. The error completes the sentence "--name …". */
  read(text: string | undefined): Result<T, string>;
}

/** The values that a set of options gives, by their names. */
export type OptionValues<O> = { readonly [K in keyof O]: O[K] extends Option<infer T> ? T : never };

export type ParseText<T> = (text: string) => Result<T, string>;

export function required<T>(placeholder: string, help: string, parse: ParseText<T>): Option<T> {
  return {
    kind: 'option',
    placeholder,
    help,
    usage: (name) => `--${name} ${placeholder}`,
    read: (text) => (text === undefined ? fail('is missing') : parse(text)),
  };
}

export function optional<T>(placeholder: string, help: string, parse: ParseText<T>): Option<T | undefined> {
  return {
    kind: 'option',
    placeholder,
    help,
    usage: (name) => `[--${name} ${placeholder}]`,
    read: (text) => (text === undefined ? ok(undefined) : parse(text)),
  };
}

export function flag(help: string): Option<boolean> {
  return {
    kind: 'flag',
    placeholder: '',
    help,
    usage: (name) => `[--${name}]`,
    read: (text) => ok(text !== undefined),
  };
}

/** The one argument without a name. */
export function operand<T>(placeholder: string, help: string, parse: ParseText<T>): Option<T> {
  return {
    kind: 'operand',
    placeholder,
    help,
    usage: () => placeholder,
    read: (text) => (text === undefined ? fail('is missing') : parse(text)),
  };
}
