import type { Steps } from '../base/workTurns.ts';

/** The budget of work of the pod (base/workTurns), in which what the feed brings has a share. */
export interface Turns {
  run<T>(key: 'feed', steps: Steps<T>): Promise<T>;
}

/** Longer work than this is divided. */
const AT_ONCE_MS = 1;

/** What `steps` returns: at once when it is little work, as most changes are, else in turns with all other long work. */
export async function inTurns<T>(turns: Turns, steps: Steps<T>): Promise<T> {
  const endMs = performance.now() + AT_ONCE_MS;
  do {
    const step = steps.next();
    if (step.done === true) return step.value;
  } while (performance.now() < endMs);
  return turns.run('feed', steps);
}
