import { type ChildProcess, spawn } from 'node:child_process';
import { hasCode } from '../../lib/errors.ts';
import type { Account } from './dataFolder.ts';

const GRACE_SECONDS = 10;

/**
 * The watchdog waits in the background for the end of its input, which comes when the parent closes it or dies in
 * whatever way, and then stops the program: INT is the fast shutdown of Postgres (roll back what is open, write a
 * checkpoint), QUIT the immediate one. The shell itself becomes the program, so the child's pid is the program's.
 * The double parentheses keep the watchdog from being its child: Postgres restarts when an unknown child is killed.
 */
const WATCHDOG = `
exec 3<&0 0</dev/null
( (
  read -r line <&3
  for name in INT QUIT KILL; do
    kill -s "$name" $$ 2>/dev/null || exit 0
    seconds=0
    while [ "$seconds" -lt ${GRACE_SECONDS} ]; do
      kill -s 0 $$ 2>/dev/null || exit 0
      sleep 1
      seconds=$((seconds + 1))
    done
  done
) & )
exec "$@" 3<&-
`;

/** A program that does not outlive this process. */
export interface Watched {
  readonly pid: number;
  /** Settles when the program has ended: its exit code, or the name of the signal that ended it. */
  readonly ended: Promise<number | NodeJS.Signals>;
  /** Asks it to end (INT, then QUIT, then KILL, ten seconds each) and waits for it. */
  stop(): Promise<void>;
  kill(signal: NodeJS.Signals): void;
  /** Lets this process end even though the program still runs (which ends it). */
  unref(): void;
}

/**
 * Starts a program in a session of its own, so that Ctrl-C in the terminal does not reach it, with its output in
 * the open file `logFd`. Needs a POSIX shell. Rejects when the shell cannot be started as that account.
 */
export async function spawnWatched(
  program: string,
  args: readonly string[],
  options: { cwd: string; logFd: number; account: Account | null; env?: NodeJS.ProcessEnv },
): Promise<Watched> {
  const child = spawn('/bin/sh', ['-c', WATCHDOG, 'sh', program, ...args], {
    cwd: options.cwd,
    detached: true,
    stdio: ['pipe', options.logFd, options.logFd],
    ...(options.env && { env: options.env }),
    ...(options.account && { uid: options.account.uid, gid: options.account.gid }),
  });
  // The pipe breaks when the program ends first; `ended` says so, and an unheard error would end this process.
  child.stdin?.on('error', () => undefined);
  const ended = new Promise<number | NodeJS.Signals>((resolve) => {
    child.once('exit', (code, signal) => {
      if (child.pid !== undefined) killGroup(child.pid);
      resolve(signal ?? code ?? 0);
    });
  });
  const pid = await new Promise<number>((resolve, reject) => {
    child.once('error', reject);
    child.once('spawn', () => resolve(child.pid ?? 0));
  });
  return {
    pid,
    ended,
    stop: () => stop(child, ended),
    kill: (signal) => {
      child.kill(signal);
    },
    unref: () => {
      child.unref();
      if (child.stdin && 'unref' in child.stdin && typeof child.stdin.unref === 'function')
        child.stdin.unref();
    },
  };
}

async function stop(child: ChildProcess, ended: Promise<unknown>): Promise<void> {
  child.ref(); // else this process may end while it waits
  child.kill('SIGINT');
  child.stdin?.end();
  await ended;
}

/** Ends the watchdog, which is what is left of the group: its pid must not be signalled once it is free again. */
function killGroup(pid: number): void {
  try {
    process.kill(-pid, 'SIGKILL');
  } catch (error) {
    if (!hasCode(error, 'ESRCH', 'EPERM')) throw error;
  }
}
