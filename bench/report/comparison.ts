import { median } from '../measure/latencies.ts';
import { noiseOf } from '../measure/noise.ts';
import { formatNumber, formatPercent, formatTable } from './report.ts';

/** Of one run: `case metric` and its value. */
export type Metrics = ReadonlyMap<string, number>;

/** One round: both versions, measured one after the other. */
export type Comparison = Readonly<Record<'before' | 'after', Metrics>>;

/** Reads the lines `name 1.23, other 45` that a run prints below each `### case`. */
export function readMetrics(output: string): Metrics {
  const metrics = new Map<string, number>();
  let name = '';
  for (const line of output.split('\n')) {
    if (line.startsWith('### ')) name = line.slice(4).trim();
    if (!/^[a-z][a-z0-9_]* -?[0-9.][0-9. ]*(?:, [a-z][a-z0-9_]* -?[0-9.][0-9. ]*)*$/.test(line)) continue;
    for (const pair of line.split(', ')) {
      const blank = pair.indexOf(' ');
      metrics.set(`${name} ${pair.slice(0, blank)}`, Number(pair.slice(blank).replaceAll(' ', '')));
    }
  }
  return metrics;
}

/**
 * The medians of both versions, and the ratios of the rounds. A ratio is noise when it is no further from 1 than the
 * rounds of one version are from their median.
 */
export function formatComparison(rounds: readonly Comparison[], commit: string): string {
  const names = [...(rounds[0]?.before.keys() ?? [])].filter((name) =>
    rounds.every(({ before, after }) => before.has(name) && after.has(name)),
  );
  const rows = names.map((name) => {
    const of = (version: keyof Comparison) => rounds.map((round) => round[version].get(name) as number);
    const [before, after] = [of('before'), of('after')];
    const ratios = after.map((value, n) => value / (before[n] as number));
    const ratio = median(ratios);
    const span = `${Math.min(...ratios).toFixed(2)}–${Math.max(...ratios).toFixed(2)}`;
    const noise = Math.max(noiseOf(before), noiseOf(after));
    const isNoise = Math.abs(Math.log(ratio)) <= Math.log1p(noise);
    const [was, is] = [before, after].map((values) => formatNumber(median(values))) as [string, string];
    return [
      name,
      was,
      is,
      `${ratio.toFixed(2)} (${span})`,
      `±${formatPercent(noise)}`,
      isNoise ? 'noise' : '',
    ];
  });
  return formatTable(['metric', commit, 'working tree', 'ratio (of each round)', 'A/A', ''], rows, 6);
}
