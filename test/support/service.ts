import { type ChildProcess, spawn } from 'node:child_process';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { childEnv } from './childEnv.ts';
import { INGEST_TOKEN } from './pod.ts';

export const PROJECT = join(import.meta.dirname, '..', '..');
export const MAIN = join(PROJECT, 'src', 'main.ts');

/** The service in a process of its own, as `npm start` runs it. */
export interface ServiceProcess {
  readonly child: ChildProcess;
  /** Lines of its log and of stderr so far. */
  readonly lines: string[];
  readonly errors: string[];
  /** Settles when it listens; rejects with all it said when it ends instead. */
  readonly listening: Promise<{ readonly api: string; readonly ingest: string }>;
  /** Settles when the process has ended and said everything. */
  readonly ended: Promise<{ readonly code: number | null; readonly signal: NodeJS.Signals | null }>;
}

/** Variables of a service on a database; ports are chosen by the system. */
export function serviceEnv(databaseUrl: string): Record<string, string> {
  return {
    DATABASE_URL: databaseUrl,
    INGEST_TOKEN,
    SECRETS_KEY: Buffer.alloc(32, 7).toString('base64'),
    PORT: '0',
    INGEST_PORT: '0',
    RATE_LIMIT_KEY_MINUTE: '0',
    RATE_LIMIT_KEY_HOUR: '0',
    RATE_LIMIT_IP_MINUTE: '0',
  };
}

/**
 * Starts it with these variables and no others; it heads a process group and is killed after the test. `project`: the folder
 * of another version.
 */
export function startProcess(
  t: TestContext,
  env: Readonly<Record<string, string>>,
  project = PROJECT,
): ServiceProcess {
  const child = spawn(process.execPath, [join(project, 'src', 'main.ts')], {
    cwd: project,
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: childEnv(env),
  });
  t.after(() => {
    child.kill('SIGKILL');
  });
  const lines: string[] = [];
  const errors: string[] = [];
  const ended = new Promise<{ code: number | null; signal: NodeJS.Signals | null }>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code, signal) => resolve({ code, signal }));
  });
  createInterface(child.stderr).on('line', (line) => errors.push(line));
  const log = createInterface(child.stdout).on('line', (line) => lines.push(line));
  const listening = new Promise<{ api: string; ingest: string }>((resolve, reject) => {
    log.on('line', (line) => {
      const { msg, port, ingest_port } = JSON.parse(line) as Record<string, unknown>;
      if (msg === 'listening') {
        resolve({ api: `http://127.0.0.1:${port}`, ingest: `http://127.0.0.1:${ingest_port}` });
      }
    });
    ended.then(() => reject(new Error(`the service ended:\n${[...lines, ...errors].join('\n')}`)), reject);
  });
  listening.catch(() => undefined); // not every test waits for it
  return { child, lines, errors, listening, ended };
}
