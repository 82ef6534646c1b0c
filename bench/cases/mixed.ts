import type { BenchCase } from '../benchCase.ts';
import { runTrafficCase } from '../setup/trafficCase.ts';

const SMOKE_SECONDS = 0.5;

export const bench: BenchCase = {
  about: 'polls of all kinds while points arrive and areas change',
  run: (context) => runTrafficCase(context, context.smoke ? SMOKE_SECONDS : 2 * context.seconds),
};
