import { readdir, readFile, writeFile } from 'node:fs/promises';
import type { Measured, Row } from '../benchCase.ts';
import type { Machine } from '../measure/machine.ts';
import { type Budgets, evaluateBudgets, readBudgets, type Verdict } from './budgets.ts';
import { COLUMNS, formatMetrics, formatNumber, formatTable } from './report.ts';

const RESULTS = new URL('../RESULTS.md', import.meta.url);
const PERFORMANCE = new URL('../../docs/performance.md', import.meta.url);
const MARKS = ['<!-- results: npm run bench -- --results -->\n\n', '\n\n<!-- end of results -->'] as const;
const LEFT_OUT: readonly string[] = ['p99.9', 'server / load busy'];
/** How the name of a row begins that is the least that a case can cost. */
const FLOOR = 'floor: ';
const HEAD = `# Results

\`npm run bench -- --record\` writes this file from the records in \`bench/results\`, which hold more than is shown here.
Of each case the newest record counts. Compare values of different records only by their ratio to the floors, which
were measured in the same run. [docs/performance.md](../docs/performance.md) says how to read the tables.`;

/** Writes RESULTS.md and the table of docs/performance.md. */
export async function writeResults(): Promise<void> {
  for (const { url, text } of await formatResults()) await writeFile(url, text);
}

export async function formatResults(): Promise<{ url: URL; text: string }[]> {
  const newest = newestCases(await readRecords(RECORDS));
  return [
    { url: RESULTS, text: resultsText(newest, await readBudgets()) },
    { url: PERFORMANCE, text: withSummary(await readFile(PERFORMANCE, 'utf8'), newest) },
  ];
}

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
  const rows = SUMMARY.flatMap(([name, what, template]) => {
    const found = newest.find(({ measured }) => measured.name === name);
    if (found === undefined) return [];
    const { record, measured } = found;
    return [[what, fillSummary(template, measured), record.machine.commit, dateOf(record)]];
  });
  const table = formatTable(['what', 'measured', 'commit', 'date'], rows, 4);
  const [from, to] = MARKS.map((mark) => text.indexOf(mark)) as [number, number];
  if (from < 0 || to < from)
    throw new Error(`the text has no ${MARKS.map((mark) => mark.trim()).join(' … ')}`);
  return text.slice(0, from) + MARKS[0] + table + text.slice(to);
}

export function resultsText(newest: readonly NewestCase[], budgets: Budgets): string {
  const sections = [
    HEAD,
    '## Records',
    formatTable(['machine', 'Node', 'Postgres', 'commits (date, load before)'], machineRows(newest), 4),
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

/** A row for each machine, with its records, newest first. */
function machineRows(newest: readonly NewestCase[]): string[][] {
  const records = [...new Set(newest.map(({ record }) => record))];
  records.sort((a, b) => (a.takenAt < b.takenAt ? 1 : -1));
  const byMachine = Map.groupBy(records, ({ machine }) => {
    const { cpu, cores, memoryGb, node, postgres } = machine;
    return JSON.stringify([`${cpu}, ${cores} cores, ${memoryGb} GB`, node, postgres]);
  });
  return [...byMachine].map(([machine, all]) => {
    const commits = all.map((record) => {
      const { commit, load } = record.machine;
      return `${commit} (${dateOf(record)}, ${load.toFixed(1)})`;
    });
    return [...(JSON.parse(machine) as string[]), commits.join(', ')];
  });
}

function budgetRows(name: string, budgets: Budgets[string], newest: readonly NewestCase[]): string[][] {
  const found = newest.find(({ measured }) => measured.name === name);
  return evaluateBudgets(budgets, found?.measured.metrics ?? {}).map((verdict) => {
    const { metric, value, budget } = verdict;
    const limit = budget.min === undefined ? `≤ ${budget.max}` : `≥ ${budget.min}`;
    const measured = value === null ? '' : formatNumber(value);
    const source = found === undefined ? ['', ''] : [found.record.machine.commit, dateOf(found.record)];
    return [`${name} ${metric}`, measured, limit, String(budget.goal ?? ''), wordFor(verdict), ...source];
  });
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

/** A line for each case that has floors: a time alone says little about another machine. */
function measurementTable(newest: readonly NewestCase[]): string {
  const shown = newest.flatMap(({ record, measured }) => {
    const main = mainRow(measured.rows);
    const floors = measured.rows.filter(isFloor);
    return main === undefined || floors.length === 0 ? [] : [{ record, name: measured.name, main, floors }];
  });
  const columns = Object.entries<(row: Row) => string>(COLUMNS).filter(
    ([title]) => !LEFT_OUT.includes(title),
  );
  return formatTable(
    ['measurement', ...columns.map(([title]) => title), 'floors of the same run', 'commit', 'date'],
    shown.map(({ record, name, main, floors }) => [
      `${name}: ${main.what}`,
      ...columns.map(([, text]) => text(main)),
      floors.map(floorText).join('; '),
      record.machine.commit,
      dateOf(record),
    ]),
  );
}

function floorText(floor: Row): string {
  const [rate, p99, cpu, time] = (['rate', 'p99', 'CPU each', 'time'] as const).map((title) =>
    COLUMNS[title](floor),
  );
  const values = [rate, p99 && `p99 ${p99}`, cpu && `${cpu} of CPU`, time].filter((text) => text !== '');
  return `${floor.what.slice(FLOOR.length)}: ${values.join(', ')}`;
}

const isFloor = ({ what }: Row): boolean => what.startsWith(FLOOR);

/** The row that stands for its case. Those with a histogram were measured at a share of its rate. */
const mainRow = (rows: readonly Row[]): Row | undefined =>
  rows.findLast((row) => !isFloor(row) && row.histogram === undefined);

const dateOf = ({ takenAt }: BenchRecord): string => takenAt.slice(0, 10);

/** What one run measured. Records are kept as JSON files and never change. */
export interface BenchRecord {
  readonly takenAt: string;
  readonly machine: Machine;
  readonly seconds: number;
  /** What a reader must know about this record. */
  readonly note?: string;
  readonly cases: readonly RecordedCase[];
}

export interface RecordedCase extends Omit<Measured, 'kind'> {
  readonly name: string;
  /** Preparation included. */
  readonly tookSeconds?: number;
}

export const RECORDS = new URL('../results/', import.meta.url);

export async function readRecords(folder: URL): Promise<BenchRecord[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.json'));
  const texts = await Promise.all(files.map((file) => readFile(new URL(file, folder), 'utf8')));
  const records = texts.map((text) => JSON.parse(text) as BenchRecord);
  return records.sort((a, b) => (a.takenAt < b.takenAt ? 1 : -1));
}

export async function writeRecord(folder: URL, record: BenchRecord): Promise<void> {
  const { cases, ...head } = record;
  const stem = `${record.takenAt.slice(0, 16).replaceAll(':', '')}Z-${record.machine.commit}`;
  const kept = await writeProfiles(folder, `${stem}-`, cases);
  const lines = kept.map((recorded) => JSON.stringify(recorded)).join(',\n');
  const text = `${JSON.stringify(head).slice(0, -1)},"cases":[\n${lines}\n]}\n`;
  await writeFile(new URL(`${stem}.json`, folder), text);
}

/** Writes the profiles of cases into files that DevTools opens, and returns the cases without them. */
export async function writeProfiles(folder: URL, prefix: string, cases: readonly RecordedCase[]) {
  return Promise.all(
    cases.map(async ({ profiles = [], ...others }): Promise<RecordedCase> => {
      const kept = profiles.map(async ({ cpuProfile, ...profile }, n) => {
        const file = new URL(`${prefix}${others.name}-${n + 1}.cpuprofile`, folder);
        if (cpuProfile !== undefined) await writeFile(file, JSON.stringify(cpuProfile));
        return profile;
      });
      return { ...others, ...(kept.length > 0 && { profiles: await Promise.all(kept) }) };
    }),
  );
}

const OF_FLOORS =
  '{rate} requests/s, p99 {p99_ms_at_50} ms at half of it; by processor time {of_express_by_cpu} × Express, {of_node_by_cpu} × node:http';

/**
 * The lines of docs/performance.md: a case, what it shows, and its measurements. `{name}` stands for a metric of the
 * case, `{rate}` for the rate of its main row.
 */
const SUMMARY: readonly (readonly [name: string, what: string, measured: string])[] = [
  ['nearest', 'nearest, k = 1, over HTTP', OF_FLOORS],
  ['nearest-tenants', 'nearest, called by 10 000 accounts', OF_FLOORS],
  ['nearest-redis', 'nearest, limits and versions in Redis', OF_FLOORS],
  ['contains', 'contains, 2 000 vertices, 100 000 areas', OF_FLOORS],
  ['location', 'location of a device', OF_FLOORS],
  ['devices', 'devices, pages of 50', OF_FLOORS],
  ['nearest-memory', 'nearest, in process, 1 M devices', '{us_1000000} µs: {growth} × that of 10 000'],
  [
    'contains-memory',
    'contains and distance, in process, 2 000 vertices',
    '{us_2000} µs: {growth} × that of 20 vertices',
  ],
  [
    'contenders',
    'time of other libraries for the same (least of all sizes)',
    'geokdbush {nearest_1_vs_geokdbush_ranked} ×, Flatbush {edge_distance_vs_flatbush} ×, polygon-clipping {cut_vs_polygon_clipping} ×',
  ],
  [
    'ingest',
    'ingest over HTTP, durable, 10 000 areas',
    '{points_per_second} points/s: {of_unnest} × a plain insert of the rows',
  ],
  [
    'import',
    'nearest during an import of 200 × 2 000 vertices',
    'p99 {p99_ms} ms; the import takes {seconds} s',
  ],
  ['webhooks', 'point to webhook, 1 000 points/s', 'p99 {p99_ms} ms'],
  [
    'webhooks',
    'deliveries of a backlog, one pod',
    '{deliveries_per_second} a second, {cpu_us_per_delivery} µs of a core each',
  ],
  ['mixed', '2 000 polls/s, 2 000 points/s, changing areas', 'p99 of the polls {p99_ms} ms'],
  [
    'soak',
    'ten minutes of it',
    'event loop p99 {loop_p99_ms} ms; heap {heap_growth} ×, memory {rss_growth} × the start',
  ],
  ['start', 'start with 1 M devices, 100 000 areas', '{seconds} s, {rss_mb} MB'],
  ['demo', '`npm run demo` to the first answer', '{seconds} s'],
  [
    'neighbours',
    'worst effect of an attack on another customer',
    '{failed_calls} failed calls; polls {worst_poll_of_limit}, points {worst_point_of_limit} of what is allowed',
  ],
];

/** A line of the summary with the values of a case. A value that is missing is a dash. */
function fillSummary(template: string, { metrics, rows }: RecordedCase): string {
  return template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    const value = name === 'rate' ? mainRow(rows)?.perSecond : metrics[name];
    if (value === undefined) return '–';
    return value === 0 ? '0' : formatNumber(value);
  });
}
