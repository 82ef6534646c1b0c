import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { exists } from '../../src/postgres/embedded/dataFolder.ts';
import { childEnv } from './childEnv.ts';
import { curlLines } from './http/demoCurls.ts';
import { makeDataDir, removeDataDir } from './postgres/cluster.ts';

export const DEMO = join(import.meta.dirname, '..', '..', 'src', 'cli', 'demo', 'demo.ts');

export interface RunningDemo {
  readonly child: ChildProcess;
  readonly dataDir: string;
  /** The lines to paste, as they were printed. */
  readonly curls: readonly string[];
  readonly welcome: string;
  /** Presses Ctrl-C and returns how the process ended. */
  interrupt(): Promise<{ code: number | null; out: string; err: string }>;
}

/** `npm run demo` as a process, once it has said what can be done with it. */
export async function startDemo(t: TestContext, dataDir: string): Promise<RunningDemo> {
  const child = spawn(process.execPath, [DEMO], {
    env: childEnv({
      PORT: '0',
      INGEST_PORT: '0',
      DATA_DIR: dataDir,
      DATABASE_URL: 'postgres://nowhere.invalid/x',
    }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  const closed = once(child, 'close');
  t.after(async () => {
    child.kill('SIGKILL');
    await closed;
  });
  let out = '';
  let err = '';
  child.stderr.on('data', (data) => {
    err += String(data);
  });
  await new Promise<void>((resolve, reject) => {
    child.stdout.on('data', (data) => {
      out += String(data);
      if (out.includes('Ctrl-C')) resolve();
    });
    child.once('close', () => reject(new Error(`the demo ended: ${out}${err}`)));
  });
  const interrupt = async () => {
    child.kill('SIGINT');
    const [code] = (await closed) as [number | null];
    return { code, out, err };
  };
  return { child, dataDir, curls: curlLines(out), welcome: out, interrupt };
}

/** A folder for the data of a demo; removed after the test. */
export async function demoDir(t: TestContext): Promise<string> {
  const dataDir = await makeDataDir();
  t.after(async () => {
    if (await exists(join(dataDir, 'demo'))) await removeDataDir(join(dataDir, 'demo'));
    await removeDataDir(dataDir);
  });
  return dataDir;
}
