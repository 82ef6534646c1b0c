/**
 * How many times as long as on a quiet machine of two cores something takes here: at least 1. The run measures it before
 * its first test (test/run.ts); a file that runs by itself takes the machine for a quiet one.
 */
const SLOWNESS = Math.max(1, Number(process.env['FLEET_TEST_SLOWNESS'] ?? 1));

/**
 * How many whole milliseconds a test may wait for what must come, on this machine. It ends tests that hang; it decides
 * no test.
 */
export function patienceMs(quietMs: number): number {
  return Math.ceil(quietMs * SLOWNESS);
}
