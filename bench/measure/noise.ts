import type { Part } from '../benchCase.ts';
import { median } from './latencies.ts';

/** How often the median may lie outside of its interval, on either side. */
const TAIL = 0.025;

/**
 * A/A noise of the median of measurements of the same: how far the ends of its 95 % interval are from it at most, as a
 * share. What differs by less is no difference. NaN without two measurements.
 *
 * The interval assumes nothing about how measurements are distributed: as many of them are below the true median as heads
 * come up among coins (Conover, Practical Nonparametric Statistics, 3rd edition, section 3.2). Of fewer than six all are
 * within.
 */
export function noiseOf(values: readonly number[]): number {
  if (values.length < 2) return Number.NaN;
  const sorted = values.toSorted((a, b) => a - b);
  const outside = outsideOf(values.length);
  const middle = median(values);
  const [low, high] = [sorted[outside] as number, sorted[values.length - 1 - outside] as number];
  return Math.max(high / middle, middle / low) - 1;
}

/** How many of the measurements are outside of the interval, on either side. */
function outsideOf(count: number): number {
  let heads = 0;
  let chance = 2 ** -count;
  for (let tail = chance; tail <= TAIL; tail += chance) {
    chance *= (count - heads) / (heads + 1);
    heads++;
  }
  return Math.max(0, heads - 1);
}

/** Of metrics that were measured in rounds: the median of each, and its noise where there is more than one round. */
export function metricsOf(rounds: Readonly<Record<string, readonly number[]>>) {
  const all = Object.entries(rounds);
  const each = (value: (of: readonly number[]) => number, of: typeof all) =>
    Object.fromEntries(of.map(([name, values]) => [name, value(values)]));
  const repeated = all.filter(([, values]) => values.length > 1);
  return { metrics: each(median, all), noise: each(noiseOf, repeated) } satisfies Omit<Part, 'rows'>;
}
