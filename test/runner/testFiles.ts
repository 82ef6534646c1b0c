import { existsSync, globSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { fail, ok, type Result } from '../../src/lib/result.ts';

const PROJECT = join(import.meta.dirname, '..', '..');

/** What starts processes or browsers, kills them or waits for time to pass. The rest is worth a run after each change. */
const SLOW = /\.slow\.test\.ts$/;
/** Files that take longest start first: a run must not end with a long file alone. */
const FIRST = ['Browser.slow.', 'test/pods/', 'test/webhooks/', 'test/guide/', '.slow.'];

/** The test files of the project, from its folder, in the order in which a run starts them; without the slow ones if `quick`. */
export function findTestFiles({ quick }: { readonly quick: boolean }): string[] {
  const rank = (file: string): number => {
    const found = FIRST.findIndex((part) => file.includes(part));
    return found === -1 ? FIRST.length : found;
  };
  return globSync('test/**/*.test.ts', { cwd: PROJECT, exclude: ['**/node_modules'] })
    .filter((file) => !(quick && SLOW.test(file)))
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
