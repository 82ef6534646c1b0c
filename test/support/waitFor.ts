import { patienceMs } from './patience.ts';
import { IS_TORTURE } from './torture.ts';

const PAUSE_MS = 10;
/** Longer than a test may take: only so that what a failed test has left waiting does not keep its file running. */
const LIMIT_MS = patienceMs(IS_TORTURE ? 900_000 : 180_000);

/** Asks until the answer is yes. Nothing is decided by time: if it never is, the time limit of the test ends it. */
export async function waitFor(holds: () => boolean | Promise<boolean>): Promise<void> {
  const untilMs = performance.now() + LIMIT_MS;
  while (!(await holds())) {
    if (performance.now() > untilMs) throw new Error(`it did not come true within ${LIMIT_MS / 1_000} s`);
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
  }
}
