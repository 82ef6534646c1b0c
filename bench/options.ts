import { parseArgs } from 'node:util';
import { fail, ok, type Result } from '../src/base/result.ts';

export interface BenchOptions {
  /** In the order given; all when none is. */
  readonly cases: readonly string[];
  readonly smoke: boolean;
  readonly record: boolean;
  readonly profile: boolean;
  readonly seconds: number;
  readonly sizes: readonly number[] | null;
}

const SECONDS = 9;
const SECONDS_MAX = 3_600;
const SIZE_MAX = 1_000_000;

/** Parses the arguments; `known` are the names of all cases. The error lists all problems. */
export function parseOptions(
  argv: readonly string[],
  known: readonly string[],
): Result<BenchOptions, string[]> {
  const given = split(argv);
  if (!given.ok) return given;
  const { values, positionals } = given.value;
  const problems: string[] = [];
  const seconds = Number(values.seconds ?? SECONDS);
  if (!(seconds > 0 && seconds <= SECONDS_MAX))
    problems.push(`--seconds must be above 0, at most ${SECONDS_MAX}`);
  const sizes = values.sizes === undefined ? null : values.sizes.split(',').map(Number);
  if (sizes?.some((size) => !Number.isInteger(size) || size < 1 || size > SIZE_MAX)) {
    problems.push(`--sizes must be whole numbers from 1 to ${SIZE_MAX}, separated by commas`);
  }
  for (const name of positionals) {
    if (!known.includes(name)) problems.push(`there is no case ${name}; there are ${known.join(', ')}`);
  }
  const { smoke = false, record = false, profile = false } = values;
  if (smoke && record) problems.push('--record is not for --smoke, which measures too little');
  if (smoke && (values.seconds !== undefined || sizes !== null)) {
    problems.push('--smoke has its own sizes and times');
  }
  if (problems.length > 0) return fail(problems);
  const cases = positionals.length === 0 ? known : positionals;
  return ok({ cases, smoke, record, profile, seconds, sizes: sizes?.toSorted((a, b) => a - b) ?? null });
}

function split(argv: readonly string[]) {
  try {
    return ok(
      parseArgs({
        args: [...argv],
        allowPositionals: true,
        options: {
          smoke: { type: 'boolean' },
          record: { type: 'boolean' },
          profile: { type: 'boolean' },
          seconds: { type: 'string' },
          sizes: { type: 'string' },
        },
      }),
    );
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? String(error.code) : '';
    if (error instanceof Error && code.startsWith('ERR_PARSE_ARGS')) return fail([error.message]);
    throw error;
  }
}
