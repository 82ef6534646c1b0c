import { setImmediate as nextTurn } from 'node:timers/promises';
import { answerQuestions } from '../worker.ts';

/** Of one core, what the process that asks may have; 1 ends the limit. */
export interface ThrottleQuestion {
  readonly share: number;
}

/** Short, so that a stop does not look like an event loop that is late because of its work. */
const PERIOD_MS = 20;
const sleeping = new Int32Array(new SharedArrayBuffer(4));
let share = 1;
let isThrottling = false;

// A worker: stops the process that asks for a part of each period, as a container runtime does with a limit of processor
// time. Other than there, time that the process does not use is not saved for later.
answerQuestions(async (question: ThrottleQuestion): Promise<null> => {
  share = question.share;
  if (!isThrottling && share < 1) void throttle(process.ppid);
  return null;
});

async function throttle(pid: number): Promise<void> {
  isThrottling = true;
  // What a late wake-up has given or taken too much, the next periods give back.
  let owedMs = 0;
  while (share < 1) {
    const startMs = performance.now();
    sleep(Math.max(0, share * PERIOD_MS + owedMs));
    const stoppedMs = performance.now();
    process.kill(pid, 'SIGSTOP');
    sleep((1 - share) * PERIOD_MS);
    process.kill(pid, 'SIGCONT');
    const endMs = performance.now();
    owedMs += share * (endMs - startMs) - (stoppedMs - startMs);
    await nextTurn(); // messages, and the end of the parent
  }
  isThrottling = false;
}

/** More exact than a timer, which has whole milliseconds. */
function sleep(ms: number): void {
  Atomics.wait(sleeping, 0, 0, ms);
}
