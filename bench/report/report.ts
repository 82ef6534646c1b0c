import type { Row } from '../benchCase.ts';
import type { Machine } from '../measure/machine.ts';
import type { Profile } from '../measure/profile.ts';
import type { CaseRun } from '../runCase.ts';
import type { Verdict } from './budgets.ts';

/** How a value of a row is shown, by the title of its column. */
export const COLUMNS = {
  rate: ({ perSecond, unit = 'requests' }) =>
    perSecond === undefined ? '' : `${formatCount(perSecond)} ${unit}/s`,
  p50: ({ p50Ms }) => formatDuration(p50Ms),
  p99: ({ p99Ms }) => formatDuration(p99Ms),
  'p99.9': ({ p999Ms }) => formatDuration(p999Ms),
  worst: ({ worstMs }) => formatDuration(worstMs),
  'CPU each': ({ cpuUs }) => formatDuration(cpuUs === undefined ? undefined : cpuUs / 1_000),
  RSS: ({ rssMb }) => (rssMb === undefined ? '' : `${formatCount(rssMb)} MB`),
  time: ({ seconds }) => formatDuration(seconds === undefined ? undefined : seconds * 1_000),
  'server / load busy': ({ serverBusy, loadBusy }) =>
    serverBusy === undefined ? '' : `${formatPercent(serverBusy)} / ${formatPercent(loadBusy)}`,
} as const satisfies Record<string, (row: Row) => string>;

function formatRows(rows: readonly Row[]): string {
  const columns = Object.entries<(row: Row) => string>(COLUMNS).filter(([, text]) =>
    rows.some((row) => text(row) !== ''),
  );
  return formatTable(
    ['', ...columns.map(([title]) => title)],
    rows.map((row) => [row.what, ...columns.map(([, text]) => text(row))]),
  );
}

export function formatMachine({ cpu, cores, memoryGb, node, postgres, commit, load }: Machine): string {
  return (
    `${cpu}, ${cores} cores, ${memoryGb} GB, Node ${node}, ${postgres}, commit ${commit}, ` +
    `load average before ${load.toFixed(1)}`
  );
}

export function formatRun(run: CaseRun): string {
  switch (run.kind) {
    case 'failed':
      return `FAILED: ${run.reason}`;
    case 'skipped':
      return `SKIPPED: ${run.reason}`;
    case 'measured':
      return [
        run.size,
        formatRows(run.rows),
        formatMetrics(run.metrics),
        formatNoise(run.noise ?? {}),
        ...(run.notes ?? []),
        ...(run.profiles ?? []).map(formatProfile),
      ]
        .filter((part) => part !== '')
        .join('\n\n');
  }
}

function formatNoise(noise: Readonly<Record<string, number>>): string {
  const parts = Object.entries(noise).map(([name, share]) => `${name} ±${formatPercent(share)}`);
  return parts.length === 0 ? '' : `A/A noise: ${parts.join(', ')}`;
}

function formatProfile({ of, parts }: Profile): string {
  const total = parts.reduce((sum, { us }) => sum + us, 0);
  const rows = [...parts, { part: 'in all', us: total }].map(({ part, us }) => [
    part.replaceAll('|', '/'),
    formatDuration(us / 1_000),
    `${((100 * us) / total).toFixed(1)} %`,
  ]);
  return formatTable([`where ${of} spends its time`, 'self', 'share'], rows);
}

export function formatMetrics(metrics: Readonly<Record<string, number>>): string {
  return Object.entries(metrics)
    .map(([name, value]) => `${name} ${formatNumber(value)}`)
    .join(', ');
}

export function formatVerdicts(verdicts: readonly Verdict[]): string {
  return verdicts
    .map(({ metric, value, budget, isKept, isGoalReached }) => {
      const limit = budget.min === undefined ? `at most ${budget.max}` : `at least ${budget.min}`;
      const reached = isGoalReached ? 'reached' : 'not reached';
      const goal = budget.goal === undefined ? '' : `; goal ${budget.goal} ${reached}`;
      const measured = value === null ? 'not measured' : formatNumber(value);
      return `- ${isKept ? 'kept' : 'BROKEN'}: ${metric} ${measured} (${limit}${goal})`;
    })
    .join('\n');
}

/** A Markdown table, also readable on a terminal. The first `left` columns are aligned left, the others right. */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[], left = 1): string {
  const widths = head.map((title, column) =>
    Math.max(3, title.length, ...rows.map((cells) => cells[column]?.length ?? 0)),
  );
  const pad = (text: string, column: number) => {
    const width = widths[column] ?? 0;
    return column < left ? text.padEnd(width) : text.padStart(width);
  };
  const line = (cells: readonly string[]) => `| ${head.map((_, n) => pad(cells[n] ?? '', n)).join(' | ')} |`;
  const rule = widths.map((width, n) => (n < left ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  return [line(head), line(rule), ...rows.map(line)].join('\n');
}

/** With three significant digits. */
export function formatNumber(value: number): string {
  return value >= 100 ? formatCount(value) : value.toPrecision(3);
}

export function formatCount(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ' ');
}

/** Milliseconds with the unit that fits. Empty when there is none. */
export function formatDuration(ms: number | undefined): string {
  if (ms === undefined || Number.isNaN(ms)) return '';
  if (ms < 1) return `${formatNumber(ms * 1_000)} µs`;
  if (ms < 1_000) return `${formatNumber(ms)} ms`;
  return ms < 600_000 ? `${formatNumber(ms / 1_000)} s` : `${formatNumber(ms / 60_000)} min`;
}

/** One decimal below 10 %. A dash when there is none. */
export function formatPercent(share: number | undefined): string {
  if (share === undefined) return '–';
  return `${(share * 100).toFixed(share < 0.1 ? 1 : 0)} %`;
}
