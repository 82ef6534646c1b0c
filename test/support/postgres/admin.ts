import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { COMMANDS, runCommand } from '../../../src/cli/runCommand.ts';
import { withSession } from '../../../src/cli/session.ts';
import { type Env, readAdminConfig } from '../../../src/config.ts';
import { invariant } from '../../../src/lib/errors.ts';
import { openSql, type Sql } from '../../../src/postgres/sql.ts';

/** Runs `fleet` commands in this process, as an administrator beside the pods would; throws when one fails. */
export interface Admin {
  run(...argv: readonly string[]): Promise<Record<string, unknown>>;
  /** What no command does: a statement on the database, which must be given by its URL. */
  sql(work: (sql: Sql) => Promise<unknown>): Promise<void>;
  account(email: string, options?: { organization?: string; plan?: string }): Promise<void>;
  /** A new key of an account in clear text, and its id. */
  key(email: string, options?: { scopes?: string; allow?: string }): Promise<{ id: number; key: string }>;
  device(email: string, imei: string, ...options: readonly string[]): Promise<void>;
  /** Creates or updates many devices at once, as the lines of an NDJSON file say. */
  importDevices(email: string, lines: readonly object[]): Promise<void>;
}

/** `database`: its URL, or the environment of the commands (such as DATA_DIR, for an embedded Postgres). */
export function adminOf(database: string | Env, redisUrl?: string): Admin {
  const env = {
    ...(typeof database === 'string' ? { DATABASE_URL: database } : database),
    ...(redisUrl === undefined ? {} : { REDIS_URL: redisUrl }),
  };
  const config = readAdminConfig(env);
  invariant(config.ok, 'the test environment is valid');
  const run = async (...argv: readonly string[]): Promise<Record<string, unknown>> => {
    let out = '';
    let err = '';
    const say = (line: string) => {
      err += `${line}\n`;
    };
    const code = await runCommand(argv, {
      commands: COMMANDS,
      context: () => ({
        config: config.value,
        withSession: (work) => withSession(config.value, say, work),
        print: async (value) => {
          out += `${JSON.stringify(value)}\n`;
          return true;
        },
        say,
        stdin: process.stdin,
        askSecret: null,
        interrupted: new AbortController().signal,
        nowMs: Date.now,
      }),
      stdout: (text) => {
        out += text;
      },
      stderr: say,
    });
    if (code !== 0) throw new Error(`fleet ${argv.join(' ')}: ${err}`);
    return JSON.parse(out) as Record<string, unknown>;
  };
  return {
    run,
    sql: async (work) => {
      invariant(typeof database === 'string', 'the database has a URL');
      const sql = openSql(database, { maxConnections: 1, name: 'test administrator' });
      try {
        await work(sql);
      } finally {
        await sql.end();
      }
    },
    account: async (email, { organization, plan } = {}) => {
      await run(
        'account:create',
        '--email',
        email,
        '--name',
        email,
        ...(organization === undefined ? [] : ['--organization', organization]),
        ...(plan === undefined ? [] : ['--plan', plan]),
      );
    },
    key: async (email, { scopes = 'all', allow } = {}) => {
      const made = await run(
        'key:create',
        '--email',
        email,
        '--scopes',
        scopes,
        ...(allow === undefined ? [] : ['--allow', allow]),
      );
      return { id: Number(made['id']), key: String(made['key']) };
    },
    device: async (email, imei, ...options) => {
      await run('device:create', '--email', email, '--imei', imei, ...options);
    },
    importDevices: async (email, lines) => {
      const folder = await mkdtemp(join(tmpdir(), 'fleet-import-'));
      try {
        const file = join(folder, 'devices.ndjson');
        await writeFile(file, lines.map((line) => JSON.stringify(line)).join('\n'));
        const { rejected } = await run('device:import', '--email', email, file);
        invariant(Array.isArray(rejected) && rejected.length === 0, 'every line is imported');
      } finally {
        await rm(folder, { recursive: true });
      }
    },
  };
}
