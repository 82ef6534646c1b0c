import { parseArgs } from 'node:util';
import { fail, ok, type Result } from '../src/lib/result.ts';

export interface BenchOptions {
  /** In the order given; all when none is. */
  readonly cases: readonly string[];
  readonly smoke: boolean;
  /** Adds a record of the run, and writes the results from all records. */
  readonly record: boolean;
  readonly results: boolean;
  /** Measures nothing either: prints HELP and the cases. */
  readonly help: boolean;
  readonly profile: boolean;
  readonly seconds: number;
  readonly sizes: readonly number[] | null;
  /** How often each case runs. From 2 on, the A/A noise of every metric is known. */
  readonly rounds: number;
  readonly pods: 1 | 2;
}

export const HELP = `npm run bench [case…] [-- options]

Measures the cases named, or all, each in a new process on an empty database, and compares the results with their budgets.

  --smoke        only shows that the cases work
  --seconds S    for each measurement, 9 if not said
  --sizes N,…    instead of the numbers of devices that a case chooses
  --rounds N     runs each case N times: medians, and how much equal rounds differ
  --pods 2       two pods serve together, on one Postgres and Redis
  --profile      also shows where the time goes, and keeps .cpuprofile files
  --record       adds a record to bench/results, and writes RESULTS.md and the figures of the documentation
  --results      only writes those two from the records
  --help         prints this`;

const SECONDS = 9;
const SECONDS_MAX = 3_600;
const ROUNDS_MAX = 20;
const SIZE_MAX = 10_000_000;
const FLAG = { type: 'boolean', default: false } as const;
const OPTIONS = {
  smoke: FLAG,
  record: FLAG,
  results: FLAG,
  help: FLAG,
  profile: FLAG,
  seconds: { type: 'string' },
  sizes: { type: 'string' },
  rounds: { type: 'string' },
  pods: { type: 'string' },
} as const;

/** Parses the arguments; `known` are the names of all cases. Fails with all errors at once. */
export function parseOptions(
  argv: readonly string[],
  known: readonly string[],
): Result<BenchOptions, string[]> {
  const given = tryTo(() => parseArgs({ args: [...argv], allowPositionals: true, options: OPTIONS }));
  if (!given.ok) return given;
  const { values, positionals } = given.value;
  const { smoke, record, results } = values;
  const errors: string[] = [];
  const seconds = Number(values.seconds ?? SECONDS);
  if (!(seconds > 0 && seconds <= SECONDS_MAX))
    errors.push(`--seconds must be above 0, at most ${SECONDS_MAX}`);
  const sizes = values.sizes === undefined ? null : values.sizes.split(',').map(Number);
  if (sizes?.some((size) => !Number.isInteger(size) || size < 1 || size > SIZE_MAX)) {
    errors.push(`--sizes must be whole numbers from 1 to ${SIZE_MAX}, separated by commas`);
  }
  const rounds = Number(values.rounds ?? 1);
  if (!Number.isInteger(rounds) || rounds < 1 || rounds > ROUNDS_MAX)
    errors.push(`--rounds must be a whole number from 1 to ${ROUNDS_MAX}`);
  const pods = Number(values.pods ?? 1);
  if (pods !== 1 && pods !== 2) errors.push('--pods must be 1 or 2');
  for (const name of positionals) {
    if (!known.includes(name)) errors.push(`there is no case ${name}; there are ${known.join(', ')}`);
  }
  if (smoke && record) errors.push('--record is not for --smoke, which measures too little');
  if (record && (sizes !== null || pods !== 1))
    errors.push('--record is for the sizes and pods that cases choose themselves');
  if (results && argv.length > 1) errors.push('--results measures nothing, so it stands alone');
  if (smoke && (values.seconds !== undefined || sizes !== null)) {
    errors.push('--smoke has its own sizes and times');
  }
  if (errors.length > 0) return fail(errors);
  const cases = positionals.length === 0 ? known : positionals;
  const ascending = sizes?.toSorted((a, b) => a - b) ?? null;
  return ok({ ...values, cases, seconds, sizes: ascending, rounds, pods: pods === 2 ? 2 : 1 });
}

function tryTo<T>(parse: () => T): Result<T, string[]> {
  try {
    return ok(parse());
  } catch (error) {
    if (error instanceof TypeError && 'code' in error) return fail([error.message]);
    throw error;
  }
}
