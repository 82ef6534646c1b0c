import { parseArgs } from 'node:util';
import { fail, ok, type Result } from '../../src/lib/result.ts';

/** What a test run is asked for. */
export interface RunOptions {
  /** A file runs when its path contains one of them; without words every file does. */
  readonly words: readonly string[];
  readonly torture: boolean;
  /** Only the files that take no longer than a moment, for a look after each change. */
  readonly quick: boolean;
  readonly coverage: boolean;
  readonly seed: string | null;
  readonly name: string | null;
  readonly help: boolean;
}

export const HELP = `npm test [-- [options] [words]]        the long form of random tests: npm run torture

Runs the test files that have one of the words in their path, such as "nearest" or "test/pods"; without words all.

  --name PATTERN   only tests whose names match this regular expression
  --seed NUMBER    what random tests start from, to repeat a run
  --quick          only what takes a moment: no processes, browsers or faults; about a minute
  --torture        random tests go on for longer
  --coverage       prints which lines of src have run
  --help           prints this`;

/** Reads the arguments of a run; an error says what is wrong with them. */
export function parseOptions(args: readonly string[]): Result<RunOptions, string> {
  try {
    const { values, positionals } = parseArgs({
      args: [...args],
      allowPositionals: true,
      options: {
        name: { type: 'string' },
        seed: { type: 'string' },
        torture: { type: 'boolean', default: false },
        quick: { type: 'boolean', default: false },
        coverage: { type: 'boolean', default: false },
        help: { type: 'boolean', default: false },
      },
    });
    const { torture, quick, coverage, help, seed = null, name = null } = values;
    if (seed !== null && !/^\d{1,9}$/.test(seed))
      return fail('--seed takes a whole number of at most 9 digits.');
    if (quick && torture) return fail('--quick and --torture do not go together.');
    return ok({ words: positionals, torture, quick, coverage, help, seed, name });
  } catch (error) {
    return fail(`${(error as Error).message.split('. ')[0]}.`);
  }
}
