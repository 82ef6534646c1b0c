import type { Clock } from '../../src/lib/time.ts';

/** A clock that stands still until a test moves it. */
export interface ManualClock extends Clock {
  set(ms: number): void;
}

export function manualClock(startMs: number): ManualClock {
  let nowMs = startMs;
  const clock = () => nowMs;
  return Object.assign(clock, {
    set: (ms: number) => {
      nowMs = ms;
    },
  });
}
