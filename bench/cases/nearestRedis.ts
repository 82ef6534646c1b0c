import type { BenchCase } from '../benchCase.ts';
import { nearestCase } from '../setup/nearestCase.ts';

export const bench: BenchCase = nearestCase({
  about: 'the nearest device over HTTP, authorized through Redis',
  redis: true,
});
