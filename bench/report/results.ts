import { readFile, writeFile } from 'node:fs/promises';
import type { Row } from '../benchCase.ts';
import { type Budgets, evaluateBudgets, readBudgets, type Verdict } from './budgets.ts';
import { plot } from './plot.ts';
import { type BenchRecord, RECORDS, type RecordedCase, readRecords } from './record.ts';
import { COLUMNS, formatMetrics } from './report.ts';
import { fillSummary, SUMMARY } from './summary.ts';
import { formatTable } from './table.ts';
import { formatNumber } from './units.ts';

const RESULTS = new URL('../RESULTS.md', import.meta.url);
const GROWTH = new URL('../growth.svg', import.meta.url);
const PERFORMANCE = new URL('../../docs/performance.md', import.meta.url);
/** Around the table that is generated. */
const MARKS = ['<!-- results: npm run bench -- --results -->\n\n', '\n\n<!-- end of results -->'] as const;
/** Rows of a case that are shown beside its floors. The record has the others, and the cases without a floor. */
const ROWS_MAX = 2;
/** Columns of a row that the results leave out. */
const LEFT_OUT: readonly string[] = ['p97.5', 'server / load busy'];
const HEAD = `# Results

\`npm run bench -- --record\` writes this file from the records in \`bench/results\`, which hold more than is shown here.
Of each case the newest record counts. Compare values of different records only by their ratio to the floors, which
were measured in the same run. [docs/performance.md](../docs/performance.md) says how to read the tables.`;

/** A file that is generated from the records, in whole or in part. */
interface ResultFile {
  readonly url: URL;
  readonly text: string;
}

/** Writes RESULTS.md, growth.svg and the table of docs/performance.md. */
export async function writeResults(): Promise<void> {
  for (const { url, text } of await formatResults()) await writeFile(url, text);
}

/** What these files should contain. */
export async function formatResults(): Promise<ResultFile[]> {
  const newest = newestCases(await readRecords(RECORDS));
  return [
    { url: RESULTS, text: resultsText(newest, await readBudgets()) },
    { url: GROWTH, text: growthPlot(newest) },
    { url: PERFORMANCE, text: withSummary(await readFile(PERFORMANCE, 'utf8'), newest) },
  ];
}

/** A case with the record that it is from. */
interface NewestCase {
  readonly record: BenchRecord;
  readonly measured: RecordedCase;
}

/** The newest measurement of each case, by name. Takes the records newest first. */
export function newestCases(records: readonly BenchRecord[]): NewestCase[] {
  const newest = new Map<string, NewestCase>();
  for (const record of records) {
    for (const measured of record.cases) {
      if (!newest.has(measured.name)) newest.set(measured.name, { record, measured });
    }
  }
  return [...newest.values()].sort((a, b) => (a.measured.name < b.measured.name ? -1 : 1));
}

/** A text with the table of the newest measurements between the marks. */
export function withSummary(text: string, newest: readonly NewestCase[]): string {
  const [begin, end] = MARKS;
  const rows = SUMMARY.flatMap(([name, what, template]) => {
    const found = newest.find(({ measured }) => measured.name === name);
    if (found === undefined) return [];
    const { record, measured } = found;
    return [[what, fillSummary(template, measured), record.machine.commit, dateOf(record)]];
  });
  const table = formatTable(['what', 'measured', 'commit', 'date'], rows, 4);
  const [before, rest] = splitAt(text, begin);
  const [, after] = splitAt(rest, end);
  return before + begin + table + end + after;
}

function splitAt(text: string, mark: string): [before: string, after: string] {
  const at = text.indexOf(mark);
  if (at < 0) throw new Error(`the text has no ${mark.trim()}`);
  return [text.slice(0, at), text.slice(at + mark.length)];
}

/** The text of RESULTS.md. */
export function resultsText(newest: readonly NewestCase[], budgets: Budgets): string {
  const sections = [
    HEAD,
    '## Records',
    formatTable(['commit', 'date', 'machine', 'Node', 'Postgres', 'load before'], recordRows(newest), 5),
    '## Budgets',
    formatTable(
      ['metric', 'measured', 'limit', 'goal', '', 'commit', 'date'],
      Object.entries(budgets).flatMap(([name, of]) => budgetRows(name, of, newest)),
    ),
    '## Cases',
    formatTable(['case', 'size', 'metrics without a budget', 'commit'], caseRows(newest, budgets), 4),
    '## Measurements',
    measurementTable(newest),
  ];
  return `${sections.join('\n\n')}\n`;
}

function recordRows(newest: readonly NewestCase[]): string[][] {
  const records = [...new Set(newest.map(({ record }) => record))];
  records.sort((a, b) => (a.takenAt < b.takenAt ? 1 : -1));
  return records.map((record) => {
    const { commit, cpu, cores, memoryGb, node, postgres, load } = record.machine;
    const machine = `${cpu}, ${cores} cores, ${memoryGb} GB`;
    return [commit, dateOf(record), machine, node, postgres, load.toFixed(1)];
  });
}

function budgetRows(name: string, budgets: Budgets[string], newest: readonly NewestCase[]): string[][] {
  const found = newest.find(({ measured }) => measured.name === name);
  return evaluateBudgets(budgets, found?.measured.metrics ?? {}).map((verdict) => [
    `${name} ${verdict.metric}`,
    verdict.value === null ? '' : formatNumber(verdict.value),
    limitOf(verdict),
    verdict.budget.goal === undefined ? '' : String(verdict.budget.goal),
    wordFor(verdict),
    found?.record.machine.commit ?? '',
    found === undefined ? '' : dateOf(found.record),
  ]);
}

function limitOf({ budget: { min, max } }: Verdict): string {
  return min === undefined ? `≤ ${max}` : `≥ ${min}`;
}

function wordFor({ value, isKept, isGoalReached }: Verdict): string {
  if (value === null) return 'not measured';
  if (!isKept) return 'BROKEN';
  return isGoalReached ? 'kept' : 'kept, below goal';
}

function caseRows(newest: readonly NewestCase[], budgets: Budgets): string[][] {
  return newest.map(({ record, measured: { name, size, metrics } }) => {
    const others = Object.entries(metrics).filter(([metric]) => budgets[name]?.[metric] === undefined);
    return [name, size, formatMetrics(Object.fromEntries(others)), record.machine.commit];
  });
}

function measurementTable(newest: readonly NewestCase[]): string {
  const rows = newest.flatMap(({ record, measured }) =>
    shownRows(measured.rows).map((row) => ({ row, name: measured.name, record })),
  );
  const columns = Object.entries<(row: Row) => string>(COLUMNS).filter(
    ([title]) => !LEFT_OUT.includes(title),
  );
  return formatTable(
    ['measurement', ...columns.map(([title]) => title), 'commit', 'date'],
    rows.map(({ row, name, record }) => [
      `${name}: ${row.what}`,
      ...columns.map(([, text]) => text(row)),
      record.machine.commit,
      dateOf(record),
    ]),
  );
}

/** The floors and the first rows. None without floors: a time alone says little about another machine. */
function shownRows(rows: readonly Row[]): Row[] {
  const floors = rows.filter(({ what }) => what.startsWith('floor:'));
  if (floors.length === 0) return [];
  return [...rows.filter((row) => !floors.includes(row)).slice(0, ROWS_MAX), ...floors];
}

/** growth.svg: the newest curves of every case. */
export function growthPlot(newest: readonly NewestCase[]): string {
  const drawn = newest.filter(({ measured: { curves = [] } }) => curves.length > 0);
  const sources = drawn.map(
    ({ record, measured }) =>
      `${measured.name}: ${record.machine.cpu}, ${record.machine.commit}, ${dateOf(record)}`,
  );
  return plot(
    drawn.flatMap(({ measured: { curves = [] } }) => curves),
    sources.join('; '),
  );
}

function dateOf({ takenAt }: BenchRecord): string {
  return takenAt.slice(0, 10);
}
