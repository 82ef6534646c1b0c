import { join } from 'node:path';
import { Report } from 'c8';

const PROJECT = join(import.meta.dirname, '..', '..');

/** Prints which lines and branches of src have run, from what the processes of a run have written to `folder`. */
export async function printCoverage(folder: string): Promise<void> {
  const report = new Report({
    tempDirectory: folder,
    reporter: ['text'],
    src: [PROJECT],
    include: ['src/**'],
    exclude: [],
    all: true,
  });
  await report.run();
}
