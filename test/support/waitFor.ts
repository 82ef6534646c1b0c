import { inspect, isDeepStrictEqual } from 'node:util';
import { patienceMs } from './patience.ts';
import { IS_TORTURE } from './torture.ts';

/** Between two questions. What has taken longer is asked for less often, so that waiting leaves the processor to others. */
const PAUSE_MS = { least: 10, most: 100, share: 0.1 };
/** Decides no test: it ends one that hangs, shortly before the limit of a test would, which cannot say what did not come. */
const LIMIT_MS = patienceMs(IS_TORTURE ? 900_000 : 150_000);

/** Asks until the answer is yes; if it never is, the error says what is `missing`. */
export async function waitFor(
  holds: () => boolean | Promise<boolean>,
  missing: string | (() => string) = 'it did not come true',
): Promise<void> {
  const sinceMs = performance.now();
  while (!(await holds())) {
    const waitedMs = performance.now() - sinceMs;
    if (waitedMs > LIMIT_MS) {
      const text = typeof missing === 'string' ? missing : missing();
      throw new Error(`${text}, within ${LIMIT_MS / 1_000} s`);
    }
    const pauseMs = Math.min(Math.max(waitedMs * PAUSE_MS.share, PAUSE_MS.least), PAUSE_MS.most);
    await new Promise((resolve) => setTimeout(resolve, pauseMs));
  }
}

/** Reads until what was read is deeply equal to `expected`; if it never is, the error says what was read last. */
export async function waitForEqual<Value>(
  read: () => Value | Promise<Value>,
  expected: Value,
  what = 'it',
): Promise<void> {
  let last: Value;
  await waitFor(
    async () => {
      last = await read();
      return isDeepStrictEqual(last, expected);
    },
    () => `${what} is ${inspect(last)} and not ${inspect(expected)}`,
  );
}
