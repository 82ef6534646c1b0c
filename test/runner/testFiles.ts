import { existsSync, globSync } from 'node:fs';
import { join, relative, resolve } from 'node:path';
import { fail, ok, type Result } from '../../src/lib/result.ts';

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

/** Folders and files that start processes, kill them or wait for time to pass; the rest is worth a run after each change. */
const NOT_QUICK = [
  'test/access/password',
  'test/bench/',
  'test/cli/',
  'test/expressions',
  'test/flows/areas/',
  'test/flows/delivery/',
  'test/flows/feed/',
  'test/flows/ingest/heavyPoints',
  'test/guide/',
  'test/http/access/codes',
  'test/http/access/v1LoginLimits',
  'test/http/areaImport/',
  'test/http/backtest/',
  'test/http/devices/geofenceEvents',
  'test/http/explain/',
  'test/http/feeds/',
  'test/http/history/',
  'test/http/ingest/',
  'test/http/openapi/',
  'test/main',
  'test/pods/',
  'test/store/embedded/',
  'test/store/sql/',
];

/** What starts a browser. */
const BROWSER = /Browser\.test\.ts$/;

/** The test files of the project, from its folder, in the order in which a run starts them; without the slow ones if `quick`. */
export function findTestFiles({ quick }: { readonly quick: boolean }): string[] {
  const rank = (file: string): number => {
    const found = FIRST.findIndex((start) => file.startsWith(start));
    return found === -1 ? FIRST.length : found;
  };
  return globSync('test/**/*.test.ts', { cwd: PROJECT, exclude: ['**/node_modules'] })
    .filter((file) => !(quick && (NOT_QUICK.some((start) => file.startsWith(start)) || BROWSER.test(file))))
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
