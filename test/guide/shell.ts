import { type ChildProcess, spawn } from 'node:child_process';
import { createInterface } from 'node:readline';
import type { TestContext } from 'node:test';
import { childEnv } from '../support/childEnv.ts';
import { waitFor } from '../support/waitFor.ts';

/** A shell in which somebody has pasted a block of the guide. */
export interface Shell {
  /** What it has said so far, on both streams. */
  readonly lines: readonly string[];
  /** Settles with its exit code. */
  readonly ended: Promise<number | null>;
  /** The first line that fits, as soon as there is one; fails when the shell has ended without. */
  said(pattern: RegExp): Promise<string>;
}

/** What `npm run -s fleet --` starts, without npm: that costs twice the processor time of most commands. */
const WITHOUT_NPM = `npm() {
  if [ "\${*:1:4}" = 'run -s fleet --' ]; then shift 4; else command npm "$@"; return; fi
  '${process.execPath}' --import ./src/node24.mjs src/cli/fleet.ts "$@"
}
`;

/**
 * Pastes a block into bash, in this folder. Whatever still runs after the test is told to end, and waited for. Where
 * `throughNpm` is false, commands of `fleet` are started as npm starts them.
 */
export function paste(
  t: TestContext,
  block: string,
  cwd: string,
  env: Record<string, string>,
  throughNpm = false,
): Shell {
  const pasted = throughNpm ? block : WITHOUT_NPM + block;
  const child: ChildProcess = spawn('bash', ['-euo', 'pipefail', '-c', pasted], {
    cwd,
    detached: true, // a process group, since npm starts processes of its own
    stdio: ['ignore', 'pipe', 'pipe'],
    env: childEnv(env),
  });
  const lines: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    if (stream !== null) createInterface(stream).on('line', (line) => lines.push(line));
  }
  let hasEnded = false;
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (code) => {
      hasEnded = true;
      resolve(code);
    });
  });
  t.after(async () => {
    if (hasEnded || child.pid === undefined) return;
    process.kill(-child.pid, 'SIGTERM');
    await ended;
  });
  return {
    lines,
    ended,
    said: async (pattern) => {
      const find = () => lines.find((line) => pattern.test(line));
      await waitFor(() => {
        if (hasEnded && find() === undefined) throw new Error(`never said ${pattern}:\n${lines.join('\n')}`);
        return find() !== undefined;
      });
      return find() as string;
    },
  };
}
