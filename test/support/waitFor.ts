const PAUSE_MS = 10;

/** Asks until the answer is yes. Nothing is decided by time: if it never is, the time limit of the test ends it. */
export async function waitFor(holds: () => boolean | Promise<boolean>): Promise<void> {
  while (!(await holds())) await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
}
