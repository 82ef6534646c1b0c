import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { COMMANDS, runCommand } from '../../../src/cli/runCommand.ts';
import { type Session, withSession } from '../../../src/cli/session.ts';
import { type AdminConfig, type Env, readAdminConfig } from '../../../src/config.ts';
import { invariant } from '../../../src/lib/errors.ts';
import { ok, type Result } from '../../../src/lib/result.ts';
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
  // An embedded Postgres runs as long as its session, and is to have stopped when the command has returned.
  const inSession = typeof database === 'string' ? sharedSession(config.value) : null;
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
        withSession: inSession ?? ((work) => withSession(config.value, say, work)),
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

/**
 * One session for commands that follow each other at once, since tests begin with several and each session costs a
 * connection and a look at the schema. It ends when no next command has begun.
 */
function sharedSession(config: AdminConfig) {
  let opened: Promise<Result<Session, string>> | null = null;
  let close = (): void => undefined;
  let users = 0;
  const open = () =>
    new Promise<Result<Session, string>>((resolve, reject) => {
      const closed = new Promise<void>((done) => {
        close = done;
      });
      const hold = async (session: Session) => {
        resolve(ok(session));
        await closed;
        return ok(session);
      };
      withSession(config, () => undefined, hold).then(resolve, reject);
    });
  return async <T>(work: (session: Session) => Promise<Result<T, string>>): Promise<Result<T, string>> => {
    users += 1;
    opened ??= open();
    try {
      const session = await opened;
      return session.ok ? await work(session.value) : session;
    } finally {
      users -= 1;
      setImmediate(() => {
        if (users > 0) return;
        opened = null;
        close();
      });
    }
  };
}
