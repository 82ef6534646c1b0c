import { readdir, readFile, writeFile } from 'node:fs/promises';
import type { CaseOutcome } from '../benchCase.ts';
import type { Machine } from '../measure/machine.ts';

/** What one run measured. Records are kept as JSON files and never change. */
export interface BenchRecord {
  /** ISO 8601, UTC. */
  readonly takenAt: string;
  readonly machine: Machine;
  /** `--seconds` of the run. */
  readonly seconds: number;
  /** What a reader must know about this record. */
  readonly note?: string;
  readonly cases: readonly RecordedCase[];
}

export type RecordedCase = { readonly name: string } & Omit<
  Extract<CaseOutcome, { kind: 'measured' }>,
  'kind'
>;

/** The folder of the records. */
export const RECORDS = new URL('../results/', import.meta.url);

/** All records of a folder, the newest first. */
export async function readRecords(folder: URL): Promise<BenchRecord[]> {
  const files = (await readdir(folder)).filter((file) => file.endsWith('.json'));
  const texts = await Promise.all(files.map((file) => readFile(new URL(file, folder), 'utf8')));
  const records = texts.map((text) => JSON.parse(text) as BenchRecord);
  return records.sort((a, b) => (a.takenAt < b.takenAt ? 1 : -1));
}

/** Adds a record to a folder: one file, with one line for each case. */
export async function writeRecord(folder: URL, record: BenchRecord): Promise<void> {
  const { cases, ...head } = record;
  const name = `${record.takenAt.slice(0, 16).replaceAll(':', '')}Z-${record.machine.commit}.json`;
  const lines = cases.map((recorded) => JSON.stringify(recorded)).join(',\n');
  await writeFile(new URL(name, folder), `${JSON.stringify(head).slice(0, -1)},"cases":[\n${lines}\n]}\n`);
}
