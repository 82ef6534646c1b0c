import { existsSync, readdirSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { fail, ok, type Result } from '../../src/base/result.ts';

const PROJECT = join(import.meta.dirname, '..', '..');

/** Folders with files that take long, the longest first: a run must not end with a long file alone. */
const FIRST = [
  'test/pods/',
  'test/guide/',
  'test/expressions',
  'test/main',
  'test/http/',
  'test/flows/',
  'test/cli/',
];

/** The test files of the project, from its folder, in the order in which a run starts them. */
export function findTestFiles(): string[] {
  const rank = (file: string): number => {
    const found = FIRST.findIndex((start) => file.startsWith(start));
    return found === -1 ? FIRST.length : found;
  };
  return readdirSync(join(PROJECT, 'test'), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.test.ts'))
    .map((path) => join('test', path))
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

/** The files with one of the words in their path, all without words; an error names a word that no path has. */
export function selectTestFiles(
  files: readonly string[],
  words: readonly string[],
): Result<string[], string> {
  if (words.length === 0) return ok([...files]);
  const parts = words.map((word) => (existsSync(word) ? relative(PROJECT, resolve(word)) : word));
  const unknown = words.filter((_, i) => !files.some((file) => file.includes(parts[i] as string)));
  if (unknown.length > 0)
    return fail(`No test file has ${unknown.map((word) => `"${word}"`).join(' or ')} in its path.`);
  return ok(files.filter((file) => parts.some((part) => file.includes(part))));
}
