import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

const FOLDER = join(import.meta.dirname, 'cases');

/** Every file of bench/cases by the name of its case: nearestRedis.ts is nearest-redis. */
export async function findCases(): Promise<ReadonlyMap<string, string>> {
  const files = (await readdir(FOLDER)).filter((file) => file.endsWith('.ts')).sort();
  return new Map(files.map((file) => [caseName(file), join(FOLDER, file)]));
}

function caseName(file: string): string {
  return file.replace(/\.ts$/, '').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
