import type { BenchCase } from '../benchCase.ts';
import { runTrafficCase } from '../setup/trafficCase.ts';

const SMOKE_SECONDS = 0.5;
/** Ten minutes with the usual `--seconds`. */
const TIMES = 600 / 9;

export const bench: BenchCase = {
  about: 'mixed for ten minutes: growth of memory, delay of the event loop',
  run: (context) =>
    // `mixed` has the profile of this load.
    runTrafficCase(
      { ...context, profile: false },
      context.smoke ? SMOKE_SECONDS : Math.round(TIMES * context.seconds),
    ),
};
