import type { BenchCase } from '../benchCase.ts';
import { nearestCase } from '../setup/nearestCase.ts';

export const bench: BenchCase = nearestCase({
  about: 'the nearest device over HTTP, limits and versions in this process',
  redis: false,
});
