import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Processor time in seconds, of the system too. */
export interface Cost {
  readonly own: number;
  /** Of processes that were started and have ended, with what those started. */
  readonly children: number;
}

const PRINTED = 40;
/** Of /proc/self/stat behind the name of the program, counted from 0 (proc(5), cutime and cstime), in hundredths of a second. */
const CHILDREN_FIELDS = [13, 14];
const TICKS_PER_SECOND = 100;

/** What this process has cost so far. That of children is known on Linux only, and else 0. */
export function costSoFar(): Cost {
  const { user, system } = process.cpuUsage();
  return { own: (user + system) / 1e6, children: childrenSeconds() };
}

function childrenSeconds(): number {
  if (process.platform !== 'linux') return 0;
  const fields = readFileSync('/proc/self/stat', 'utf8')
    .replace(/^.*\) /s, '')
    .split(' ');
  const ticks = CHILDREN_FIELDS.reduce((sum, field) => sum + Number(fields[field]), 0);
  return ticks / TICKS_PER_SECOND;
}

/** Keeps what a file has cost since `before`, where `printCosts` finds it. */
export function keepCost(folder: string, index: number, before: Cost): void {
  const now = costSoFar();
  const cost = { own: now.own - before.own, children: now.children - before.children };
  writeFileSync(join(folder, String(index)), JSON.stringify(cost));
}

/** Prints the files that have cost most, and the sum of all. What the Postgres of all files has done for them is in neither. */
export function printCosts(folder: string, files: readonly string[]): void {
  const costs = files.map((file, index) => ({ file, ...readCost(folder, index) }));
  const of = ({ own, children }: Cost): number => own + children;
  const column = (seconds: number): string => seconds.toFixed(1).padStart(8);
  console.log('\nseconds of processor time: in all, in the test process, in processes that the file started');
  for (const { file, ...cost } of costs.toSorted((a, b) => of(b) - of(a)).slice(0, PRINTED))
    console.log([of(cost), cost.own, cost.children].map(column).join(''), file);
  const sum = costs.reduce((total, cost) => total + of(cost), 0);
  console.log(`${sum.toFixed(0)} s in all, without the Postgres of all files`);
}

function readCost(folder: string, index: number): Cost {
  const path = join(folder, String(index));
  const text = existsSync(path) ? readFileSync(path, 'utf8') : '';
  return text === '' ? { own: 0, children: 0 } : (JSON.parse(text) as Cost);
}
