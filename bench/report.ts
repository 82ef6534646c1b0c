import type { Row } from './benchCase.ts';
import type { Verdict } from './budgets.ts';
import type { Machine } from './machine.ts';
import type { Profile } from './profile.ts';
import type { CaseRun } from './runCase.ts';

const COLUMNS: readonly (readonly [title: string, text: (row: Row) => string])[] = [
  ['', (row) => row.what],
  [
    'rate',
    (row) => (row.perSecond === undefined ? '' : `${count(row.perSecond)} ${row.unit ?? 'requests'}/s`),
  ],
  ['p50', (row) => duration(row.p50Ms)],
  ['p97.5', (row) => duration(row.p975Ms)],
  ['p99', (row) => duration(row.p99Ms)],
  ['worst', (row) => duration(row.worstMs)],
  ['CPU each', (row) => duration(row.cpuUs === undefined ? undefined : row.cpuUs / 1_000)],
  ['RSS', (row) => (row.rssMb === undefined ? '' : `${count(row.rssMb)} MB`)],
  ['time', (row) => duration(row.seconds === undefined ? undefined : row.seconds * 1_000)],
  [
    'server / load busy',
    (row) => (row.serverBusy === undefined ? '' : `${percent(row.serverBusy)} / ${percent(row.loadBusy)}`),
  ],
];

/** The table of a case as Markdown, which reads well on a terminal, too. Columns that say nothing are left out. */
function formatRows(rows: readonly Row[]): string {
  const columns = COLUMNS.filter(([, text]) => rows.some((row) => text(row) !== ''));
  const table = [columns.map(([title]) => title), ...rows.map((row) => columns.map(([, text]) => text(row)))];
  const widths = columns.map((_, column) => Math.max(3, ...table.map((cells) => cells[column]?.length ?? 0)));
  const line = (cells: readonly string[]) =>
    `| ${cells.map((cell, column) => (column === 0 ? cell.padEnd(widths[0] ?? 0) : cell.padStart(widths[column] ?? 0))).join(' | ')} |`;
  const rule = widths.map((width, column) =>
    column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`,
  );
  return [line(table[0] ?? []), line(rule), ...table.slice(1).map(line)].join('\n');
}

export function formatMachine(machine: Machine, postgres: string): string {
  const { cpu, cores, memoryGb, node, commit, load } = machine;
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
        formatFigures(run.figures),
        ...(run.notes ?? []),
        ...(run.profiles ?? []).map(formatProfile),
      ].join('\n\n');
  }
}

/** Where the time of one call went, by what a sampling profiler saw. */
function formatProfile({ of, parts }: Profile): string {
  const [title, total] = [`where ${of} spends its time`, parts.reduce((sum, { us }) => sum + us, 0)];
  const rows = [...parts, { part: 'in all', us: total }].map(({ part, us }) => ({
    part: part.replaceAll('|', '/'),
    time: duration(us / 1_000),
    share: `${((100 * us) / total).toFixed(1)} %`,
  }));
  const width = (texts: readonly string[]) => Math.max(...texts.map((text) => text.length));
  const widths = {
    part: width([title, ...rows.map(({ part }) => part)]),
    time: width(['self', ...rows.map(({ time }) => time)]),
    share: width(['share', ...rows.map(({ share }) => share)]),
  };
  const line = ({ part, time, share }: (typeof rows)[number]) =>
    `| ${part.padEnd(widths.part)} | ${time.padStart(widths.time)} | ${share.padStart(widths.share)} |`;
  const rule = [
    '-'.repeat(widths.part),
    `${'-'.repeat(widths.time - 1)}:`,
    `${'-'.repeat(widths.share - 1)}:`,
  ];
  return [
    line({ part: title, time: 'self', share: 'share' }),
    `| ${rule.join(' | ')} |`,
    ...rows.map(line),
  ].join('\n');
}

function formatFigures(figures: Readonly<Record<string, number>>): string {
  return Object.entries(figures)
    .map(([name, value]) => `${name} ${shown(value)}`)
    .join(', ');
}

/** One line for each budget. */
export function formatVerdicts(verdicts: readonly Verdict[]): string {
  return verdicts
    .map(({ figure, value, budget, isKept, isGoalReached }) => {
      const limit = budget.min === undefined ? `at most ${budget.max}` : `at least ${budget.min}`;
      const goal =
        budget.goal === undefined
          ? ''
          : `; goal ${budget.goal}${isGoalReached ? ' reached' : ' not reached'}`;
      return `- ${isKept ? 'kept' : 'BROKEN'}: ${figure} ${value === null ? 'not measured' : shown(value)} (${limit}${goal})`;
    })
    .join('\n');
}

function count(value: number): string {
  return Math.round(value)
    .toString()
    .replace(/\B(?=(\d{3})+$)/g, ' ');
}

function duration(ms: number | undefined): string {
  if (ms === undefined || Number.isNaN(ms)) return '';
  if (ms < 1) return `${shown(ms * 1_000)} µs`;
  return ms < 1_000 ? `${shown(ms)} ms` : `${shown(ms / 1_000)} s`;
}

function percent(share: number | undefined): string {
  return share === undefined ? '-' : `${Math.round(share * 100)} %`;
}

/** Three digits that mean something. */
function shown(value: number): string {
  return value >= 100 ? count(value) : value.toPrecision(3);
}
