import { median } from './measure/median.ts';

/** Metrics of one run, by `case metric`. */
export type Metrics = ReadonlyMap<string, number>;

/** One round: both versions, measured one after the other. */
export interface Comparison {
  readonly before: Metrics;
  readonly after: Metrics;
}

export interface ComparedMetric {
  readonly name: string;
  readonly before: number;
  readonly after: number;
  /** The median, least and greatest of the rounds' ratios. */
  readonly ratio: number;
  readonly least: number;
  readonly greatest: number;
}

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

/** Compares the metrics that every run has: a version may lack some. */
export function compareMetrics(rounds: readonly Comparison[]): ComparedMetric[] {
  const names = [...(rounds[0]?.before.keys() ?? [])].filter((name) =>
    rounds.every(({ before, after }) => before.has(name) && after.has(name)),
  );
  return names.map((name) => {
    const before = rounds.map((round) => round.before.get(name) as number);
    const after = rounds.map((round) => round.after.get(name) as number);
    const ratios = after.map((value, n) => value / (before[n] as number));
    return {
      name,
      before: median(before),
      after: median(after),
      ratio: median(ratios),
      least: Math.min(...ratios),
      greatest: Math.max(...ratios),
    };
  });
}

export function formatComparison(metrics: readonly ComparedMetric[], commit: string): string {
  const rows = metrics.map(({ name, before, after, ratio, least, greatest }) => [
    name,
    before.toPrecision(3),
    after.toPrecision(3),
    `${ratio.toFixed(2)} (${least.toFixed(2)}–${greatest.toFixed(2)})`,
  ]);
  const head = ['metric', commit, 'working tree', 'ratio (of each round)'];
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  );
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join(' | ')} |`;
  return [line(head), line(widths.map((width) => '-'.repeat(width))), ...rows.map(line)].join('\n');
}
