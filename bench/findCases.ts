import { readdir } from 'node:fs/promises';
import { join } from 'node:path';

const FOLDER = join(import.meta.dirname, 'cases');

/** The files of bench/cases and its folders by the name of their case: nearestRedis.ts is nearest-redis. */
export async function findCases(): Promise<ReadonlyMap<string, string>> {
  const entries = await readdir(FOLDER, { recursive: true, withFileTypes: true });
  const files = entries.filter(({ name }) => name.endsWith('.ts')).sort((a, b) => (a.name < b.name ? -1 : 1));
  return new Map(files.map(({ name, parentPath }) => [caseName(name), join(parentPath, name)]));
}

function caseName(file: string): string {
  return file.replace(/\.ts$/, '').replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`);
}
