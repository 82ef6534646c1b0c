import type { BenchCase } from '../benchCase.ts';
import { nearestCase } from '../nearestCase.ts';

export const bench: BenchCase = nearestCase({
  about: 'the nearest device over HTTP, admitted through Redis',
  redis: true,
});
