import type { Steps, WorkTurns } from './workTurns.ts';

/** How long a computation runs at once. Most end before, and waiting for a turn would cost more than they do. */
const AT_ONCE_MS = 2;

/** Runs a computation: at once if it is short, else in turns with all other long computations of the pod (see WorkTurns). */
export async function inTurns<T, Key>(
  turns: Pick<WorkTurns<Key>, 'run'>,
  key: Key,
  steps: Steps<T>,
  isUrgent = false,
): Promise<T> {
  const endMs = performance.now() + AT_ONCE_MS;
  do {
    const step = steps.next();
    if (step.done === true) return step.value;
  } while (performance.now() < endMs);
  return turns.run(key, steps, isUrgent);
}
