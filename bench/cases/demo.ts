import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { childEnv } from '../../test/support/childEnv.ts';
import { askCurl, curlLines } from '../../test/support/http/demoCurls.ts';
import { makeProjectDir, removeDataDir } from '../../test/support/postgres/cluster.ts';
import type { BenchCase } from '../benchCase.ts';
import { median } from '../measure/latencies.ts';

const PROJECT = join(import.meta.dirname, '..', '..');
const ROUNDS = 3;

export const demo: BenchCase = {
  about: 'npm run demo until the first printed command gets its answer, in an empty folder and again',
  run: async ({ smoke, say }) => {
    const first: number[] = [];
    const again: number[] = [];
    for (let round = 0; round < (smoke ? 1 : ROUNDS); round++) {
      const dataDir = await makeProjectDir();
      try {
        first.push(await secondsToFirstAnswer(dataDir));
        if (!smoke) again.push(await secondsToFirstAnswer(dataDir));
        say(`${round + 1} of ${ROUNDS} rounds`);
      } finally {
        await removeDataDir(join(dataDir, 'demo'));
        await removeDataDir(dataDir);
      }
    }
    const rows = [{ what: 'demo to the first answer, empty folder', seconds: median(first) }];
    if (again.length > 0) rows.push({ what: 'the same at the next start', seconds: median(again) });
    const metrics = { seconds: median(first) };
    return { kind: 'measured', size: 'a town of driving vehicles', rows, metrics };
  },
};

/** Seconds from the command to the answer. Ends the demo as Ctrl-C does. */
async function secondsToFirstAnswer(dataDir: string): Promise<number> {
  const startMs = performance.now();
  const demo = spawn('npm', ['run', 'demo'], {
    cwd: PROJECT,
    // Its own process group, since a terminal sends Ctrl-C to npm and to the demo.
    detached: true,
    env: childEnv({ PORT: '0', INGEST_PORT: '0', DATA_DIR: dataDir }),
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const closed = once(demo, 'close');
  try {
    await askCurl(await firstLine(demo.stdout, closed));
    return (performance.now() - startMs) / 1_000;
  } finally {
    if (demo.pid !== undefined && demo.exitCode === null) process.kill(-demo.pid, 'SIGINT');
    await closed;
  }
}

async function firstLine(stdout: NodeJS.ReadableStream, closed: Promise<unknown>): Promise<string> {
  let text = '';
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  stdout.on('data', (chunk) => {
    text += String(chunk);
    const [line] = curlLines(text);
    if (line !== undefined && text.includes('Ctrl-C')) resolve(line);
  });
  void closed.then(() => reject(new Error(`the demo ended: ${text}`)));
  return promise;
}
