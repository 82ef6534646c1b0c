import { readdir, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { BenchCase, CaseOutcome } from './benchCase.ts';
import { openWorker } from './worker.ts';
import type { CaseQuestion } from './workers/caseProcess.ts';

export type CaseRun = CaseOutcome | { readonly kind: 'failed'; readonly reason: string };

const LIMIT_MS = 30 * 60_000;
/** Only ends what hangs: a slow machine takes its time. */
const SMOKE_LIMIT_MS = 5 * 60_000;
/** A case measures several things, each for the seconds that were asked for. */
const MEASURED_MAX = 10;

/** Runs a case in its own process. Never throws: a case that fails or does not end gives a result of kind `failed`. */
export async function runCase(question: CaseQuestion, interrupted: AbortSignal): Promise<CaseRun> {
  const { smoke, seconds } = question.context;
  const limitMs = smoke ? SMOKE_LIMIT_MS : LIMIT_MS + MEASURED_MAX * seconds * 1_000;
  await using worker = openWorker<CaseQuestion, CaseOutcome>('caseProcess');
  const end = () => worker.process.kill('SIGKILL');
  const timer = setTimeout(end, limitMs);
  interrupted.addEventListener('abort', end);
  try {
    return await worker.ask(question);
  } catch (error) {
    return { kind: 'failed', reason: error instanceof Error ? error.message : String(error) };
  } finally {
    clearTimeout(timer);
    interrupted.removeEventListener('abort', end);
  }
}

const FOLDER = join(import.meta.dirname, 'cases');

/** Where a case is: its file, and the name that it is exported by. */
export interface CasePlace {
  readonly path: string;
  readonly exported: string;
}

/** The exported cases of the files below bench/cases by their names: `nearestRedis` and `nearestRedisCase` are nearest-redis. */
export async function findCases(): Promise<ReadonlyMap<string, CasePlace>> {
  const files = (await readdir(FOLDER, { recursive: true })).filter((file) => file.endsWith('.ts'));
  const cases: [name: string, CasePlace][] = [];
  for (const path of files.map((file) => join(FOLDER, file))) {
    for (const [, exported = ''] of (await readFile(path, 'utf8')).matchAll(
      /^export const (\w+): BenchCase/gm,
    )) {
      const name = exported.replace(/Case$/, '').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
      cases.push([name, { path, exported }]);
    }
  }
  return new Map(cases.sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Loads the case that stands there. */
export async function loadCase({ path, exported }: CasePlace): Promise<BenchCase> {
  const cases = (await import(path)) as Readonly<Record<string, BenchCase>>;
  return cases[exported] as BenchCase;
}
