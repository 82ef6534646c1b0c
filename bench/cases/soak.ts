import type { BenchCase } from '../benchCase.ts';
import { runTrafficCase } from '../trafficCase.ts';

const SMOKE_SECONDS = 0.5;
/** Ten minutes with the usual `--seconds`. */
const TIMES = 600 / 9;

export const bench: BenchCase = {
  about: 'the same as mixed for ten minutes: does memory stay flat, does the event loop stay free',
  run: (context) =>
    // The profile of this load is told with `mixed`.
    runTrafficCase(
      { ...context, profile: false },
      context.smoke ? SMOKE_SECONDS : Math.round(TIMES * context.seconds),
    ),
};
