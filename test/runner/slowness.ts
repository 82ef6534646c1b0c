import { execFileSync } from 'node:child_process';
import { pbkdf2Sync } from 'node:crypto';

/** What the samples take on two quiet cores of a machine of 2023, with Node 24. */
const QUIET_MS = 100;
const SAMPLES = 3;

/**
 * How many times as long as on a quiet machine a start of a process and some arithmetic take here, by the clock: what
 * tests mostly do. 1 or more, the largest of a few samples, since a busy machine is not busy all the time.
 */
export function measureSlowness(): number {
  const samples = Array.from({ length: SAMPLES }, () => {
    const sinceMs = performance.now();
    execFileSync(process.execPath, ['--eval', '0'], { stdio: 'ignore' });
    pbkdf2Sync('password', 'salt', 500_000, 32, 'sha256');
    return performance.now() - sinceMs;
  });
  return Math.max(1, Math.max(...samples) / QUIET_MS);
}
