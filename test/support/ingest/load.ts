import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';

/** Leaves most of a processor to whoever else tests something. */
const PAUSE_MS = 25;

/** What came back from calls made over and over: how often each answer, by name of the call. */
export type Tally = Record<string, number>;

export interface Load {
  readonly tally: Tally;
  /** Lets the calls under way finish. Rejects with what a call has thrown. */
  stop(): Promise<void>;
}

/** Makes each of the calls over and over, the next soon after one is answered, until `stop` or the end of the test. */
export function startLoad(
  t: TestContext,
  calls: Readonly<Record<string, () => Promise<{ status: number }>>>,
): Load {
  const tally: Tally = {};
  let isOver = false;
  const callers = Object.entries(calls).map(async ([name, call]) => {
    while (!isOver) {
      const { status } = await call();
      const answer = `${name} ${status}`;
      tally[answer] = (tally[answer] ?? 0) + 1;
      await sleep(PAUSE_MS);
    }
  });
  const all = Promise.all(callers);
  all.catch(() => {
    isOver = true;
  });
  t.after(() => {
    isOver = true;
  });
  return {
    tally,
    stop: async () => {
      isOver = true;
      await all;
    },
  };
}
