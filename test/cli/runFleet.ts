import assert from 'node:assert/strict';
import { Readable } from 'node:stream';
import { COMMANDS, runCommand } from '../../src/cli/runCommand.ts';
import { withSession } from '../../src/cli/session.ts';
import { type Env, readAdminConfig } from '../../src/config.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { started } from '../support/started.ts';
import { watchFeed } from './feed.ts';

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

/** Runs one command line of `fleet` in this process, on the database of that URL. In a text, quotes are as in a shell. */
export async function runFleet(
  databaseUrl: string,
  line: string | readonly string[],
  options: FleetOptions = {},
): Promise<FleetRun> {
  const out: string[] = [];
  const err: string[] = [];
  const say = (text: string) => void err.push(`${text}\n`);
  const {
    stdin = '',
    interrupted = new AbortController().signal,
    readLines = Number.POSITIVE_INFINITY,
  } = options;
  const typed = [...(options.typed ?? [])];
  const askSecret = async () => typed.shift() ?? '';
  const code = await runCommand(typeof line === 'string' ? wordsOf(line) : line, {
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

function wordsOf(line: string): string[] {
  return (line.match(/(?:'[^']*'|[^\s'])+/g) ?? []).map((word) => word.replaceAll("'", ''));
}

export interface FleetDatabase {
  readonly url: string;
  readonly sql: Sql;
  fleet(line: string, options?: FleetOptions): Promise<FleetRun>;
  /** What the command did, and what it told the pods: see watchFeed. */
  watch(line: string, options?: FleetOptions): ReturnType<typeof watchFeed<FleetRun>>;
  /** The command ends with that code, prints nothing on stdout and this on stderr. */
  refuses(line: string, code: number, message: RegExp | string, options?: FleetOptions): Promise<void>;
}

/** A database for the tests of the file that calls this, on which these command lines have run. */
export function fleetDatabase(...lines: readonly string[]): FleetDatabase {
  return started(
    async () => {
      const { url } = await createDatabase();
      const sql = openSql(url, { maxConnections: 2, name: 'test' });
      const fleet: FleetDatabase['fleet'] = (line, options) => runFleet(url, line, options);
      for (const line of lines) assert.equal((await fleet(line)).code, 0, line);
      return {
        url,
        sql,
        fleet,
        watch: (line: string, options?: FleetOptions) => watchFeed(sql, () => fleet(line, options)),
        refuses: async (line: string, code: number, message: RegExp | string, options?: FleetOptions) => {
          const run = await fleet(line, options);
          assert.deepEqual([run.code, run.stdout], [code, ''], line);
          if (typeof message === 'string') assert.equal(run.stderr, message);
          else assert.match(run.stderr, message);
        },
      };
    },
    ({ sql }) => sql.end(),
  );
}
