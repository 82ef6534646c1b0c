import { spawn, spawnSync } from 'node:child_process';
import type { TestContext } from 'node:test';
import { childEnv } from './childEnv.ts';
import { waitFor } from './waitFor.ts';

/** For tests that need a terminal: why they are skipped, or false. */
export const NO_TERMINAL: string | false =
  spawnSync('script', ['--version']).status === 0
    ? false
    : 'the program script (util-linux) is not installed';

/** A program that runs in a terminal of its own. */
export interface TerminalProgram {
  /** All that the terminal showed so far. */
  output(): string;
  /** Resolves when the output matches. */
  said(pattern: RegExp): Promise<void>;
  type(text: string): void;
  /** The exit code. */
  readonly ended: Promise<number | null>;
}

/** Starts a program with stdin, stdout and stderr in a terminal (script, of util-linux); it is killed after the test. */
export function spawnInTerminal(
  t: TestContext,
  argv: readonly string[],
  env: Readonly<Record<string, string>>,
): TerminalProgram {
  const command = argv.map((word) => `'${word.replaceAll("'", "'\\''")}'`).join(' ');
  const child = spawn('script', ['--quiet', '--return', '--flush', '--command', command, '/dev/null'], {
    env: childEnv(env),
    detached: true,
  });
  t.after(() => {
    if (child.pid !== undefined && child.exitCode === null) process.kill(-child.pid, 'SIGKILL');
  });
  let output = '';
  child.stdout.on('data', (chunk: Buffer) => {
    output += chunk.toString('utf8');
  });
  const ended = new Promise<number | null>((resolve, reject) => {
    child.once('error', reject);
    child.once('close', resolve);
  });
  return {
    output: () => output,
    said: (pattern) =>
      waitFor(() => {
        if (child.exitCode !== null && !pattern.test(output)) throw new Error(output);
        return pattern.test(output);
      }),
    type: (text) => void child.stdin.write(text),
    ended,
  };
}
