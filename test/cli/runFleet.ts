import { Readable } from 'node:stream';
import { COMMANDS, runCommand } from '../../src/cli/runCommand.ts';
import { withSession } from '../../src/cli/session.ts';
import { type Env, readAdminConfig } from '../../src/config.ts';

export interface FleetRun {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
  /** stdout as JSON; undefined unless it is one line of it. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into documents of every shape
  readonly json: any;
}

export interface FleetOptions {
  readonly env?: Env;
  readonly stdin?: string | readonly Uint8Array[];
  readonly interrupted?: AbortSignal;
  /** How many lines of stdout are read; all of them without it. */
  readonly readLines?: number;
  /** What a user types in the terminal, answer by answer. Without it stdin is not a terminal. */
  readonly typed?: readonly string[];
}

/** The words of a command line without quotes. */
export const words = (line: string): string[] => line.split(' ');

/** Runs one command line of `fleet` in this process, on the database of that URL. */
export async function runFleet(
  databaseUrl: string,
  argv: readonly string[],
  options: FleetOptions = {},
): Promise<FleetRun> {
  const out: string[] = [];
  const err: string[] = [];
  const say = (line: string) => void err.push(`${line}\n`);
  const {
    stdin = '',
    interrupted = new AbortController().signal,
    readLines = Number.POSITIVE_INFINITY,
  } = options;
  const typed = [...(options.typed ?? [])];
  const askSecret = async () => typed.shift() ?? '';
  const code = await runCommand(argv, {
    commands: COMMANDS,
    context() {
      const config = readAdminConfig({ DATABASE_URL: databaseUrl, ...options.env });
      if (!config.ok) return config.error;
      return {
        config: config.value,
        withSession: (work) => withSession(config.value, say, work),
        print: async (value) => out.push(`${JSON.stringify(value)}\n`) <= readLines,
        say,
        stdin: Readable.from(typeof stdin === 'string' ? [Buffer.from(stdin)] : stdin),
        askSecret: options.typed === undefined ? null : askSecret,
        interrupted,
        nowMs: Date.now,
      };
    },
    stdout: (text) => void out.push(text),
    stderr: (text) => void err.push(text),
  });
  const stdout = out.join('');
  return {
    code,
    stdout,
    stderr: err.join(''),
    json: /^\{.*\}\n$/.test(stdout) ? JSON.parse(stdout) : undefined,
  };
}
