import type { Part } from '../benchCase.ts';
import { median } from './latencies.ts';

/**
 * A/A noise: by what share two measurements of the same differed at most, of those that were made one after the other.
 * What differs by less is no difference. NaN without two.
 */
export function noiseOf(values: readonly number[]): number {
  const steps = values.slice(1).map((value, n) => Math.abs(Math.log(value / (values[n] as number))));
  return steps.length === 0 ? Number.NaN : Math.expm1(Math.max(...steps));
}

/** Of metrics that were measured in rounds: the median of each, and its noise where there is more than one round. */
export function metricsOf(rounds: Readonly<Record<string, readonly number[]>>) {
  const all = Object.entries(rounds);
  const each = (value: (of: readonly number[]) => number, of: typeof all) =>
    Object.fromEntries(of.map(([name, values]) => [name, value(values)]));
  const repeated = all.filter(([, values]) => values.length > 1);
  return { metrics: each(median, all), noise: each(noiseOf, repeated) } satisfies Omit<Part, 'rows'>;
}
