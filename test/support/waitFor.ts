import { patienceMs } from './patience.ts';
import { IS_TORTURE } from './torture.ts';

/** Between two questions. What has taken longer is asked for less often, so that waiting leaves the processor to others. */
const PAUSE_MS = { least: 10, most: 50, share: 0.05 };
/** Longer than a test may take: only so that what a failed test has left waiting does not keep its file running. */
const LIMIT_MS = patienceMs(IS_TORTURE ? 900_000 : 180_000);

/** Asks until the answer is yes. Nothing is decided by time: if it never is, the time limit of the test ends it. */
export async function waitFor(holds: () => boolean | Promise<boolean>): Promise<void> {
  const sinceMs = performance.now();
  while (!(await holds())) {
    const waitedMs = performance.now() - sinceMs;
    if (waitedMs > LIMIT_MS) throw new Error(`it did not come true within ${LIMIT_MS / 1_000} s`);
    const pauseMs = Math.min(Math.max(waitedMs * PAUSE_MS.share, PAUSE_MS.least), PAUSE_MS.most);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}
