import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { describe, test } from 'node:test';

const SRC = join(import.meta.dirname, '..', 'src');

/** Which folders a folder may import from. What is not listed is an arrow that must never exist. */
const ALLOWED: Readonly<Record<string, readonly string[]>> = {
  base: [],
  geometry: ['base'],
  access: ['base'],
  feeds: ['base'],
  areas: ['base', 'geometry'],
  engine: ['base', 'geometry', 'areas'],
  delivery: ['base', 'access'],
  memory: ['base', 'geometry', 'areas', 'engine', 'access', 'delivery'],
  store: ['base', 'geometry', 'areas', 'engine', 'access', 'delivery', 'feeds'],
  queue: ['base', 'access', 'delivery'],
  net: ['base', 'access', 'delivery'],
  flows: [
    'base',
    'geometry',
    'areas',
    'engine',
    'access',
    'delivery',
    'feeds',
    'memory',
    'store',
    'queue',
    'net',
  ],
  http: [
    'base',
    'geometry',
    'areas',
    'engine',
    'access',
    'delivery',
    'feeds',
    'memory',
    'store',
    'flows',
    '.',
  ],
  cli: [
    'base',
    'geometry',
    'areas',
    'engine',
    'access',
    'delivery',
    'memory',
    'store',
    'queue',
    'net',
    'flows',
    '.',
  ],
  console: [],
  '.': [
    ...Array.from(['base', 'geometry', 'areas', 'engine', 'access', 'delivery', 'feeds', 'memory']),
    'store',
    'queue',
    'net',
    'flows',
    'http',
  ],
};

/** Folders whose code decides and does nothing else: no I/O, no express, no environment, no clock. */
const PURE = ['base', 'geometry', 'areas', 'engine', 'delivery', 'access', 'feeds', 'memory'];
const PURE_BUILTINS = ['node:crypto', 'node:net', 'node:util'];
/** The one clock, and files whose business is an operating-system process. */
const CLOCK = 'base/clock.ts';

/** More cannot be taken in at a glance. */
const FILES_MAX = 20;

interface Source {
  readonly path: string;
  readonly folder: string;
  readonly text: string;
  /** Imported files of src, relative to it. */
  readonly files: readonly string[];
  readonly packages: readonly string[];
}

const sources: readonly Source[] = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map(readSource);

function readSource(path: string): Source {
  const text = readFileSync(join(SRC, path), 'utf8');
  const imports = [
    ...text.matchAll(/(?:^|\n)\s*(?:import|export)\s[^;]*?from\s+'([^']+)'|import\('([^']+)'\)/g),
  ].map((match) => (match[1] ?? match[2]) as string);
  return {
    path,
    folder: folderOf(path),
    text,
    files: imports.filter((name) => name.startsWith('.')).map((name) => normalize(join(dirname(path), name))),
    packages: imports.filter((name) => !name.startsWith('.')),
  };
}

function foldersUnder(root: string): string[] {
  const folders = readdirSync(root, { withFileTypes: true, recursive: true }).filter((entry) =>
    entry.isDirectory(),
  );
  return [root, ...folders.map((entry) => join(entry.parentPath, entry.name))].filter(
    (folder) => !folder.includes('node_modules'),
  );
}

function filesIn(folder: string): number {
  return readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isFile()).length;
}

function folderOf(path: string): string {
  const [first = '', ...rest] = path.split('/');
  return rest.length === 0 ? '.' : first;
}

describe('the structure of src', () => {
  test('there is something to look at', () => {
    assert.ok(sources.length > 50);
    assert.ok(sources.some((source) => source.files.length > 3));
  });

  test('a folder imports only from folders it may know', () => {
    const wrong = sources.flatMap((source) =>
      source.files
        .map(folderOf)
        .filter((folder) => folder !== source.folder && !(ALLOWED[source.folder] ?? []).includes(folder))
        .map((folder) => `${source.path} -> ${folder}`),
    );
    assert.deepEqual(wrong, []);
  });

  test('the console stands apart: nothing imports it, and it has its packages from the allow list', () => {
    const page = sources.filter(({ folder }) => folder === 'console');
    assert.ok(page.length > 10);
    const served = ['preact', 'preact/hooks', 'htm', '@preact/signals', 'maplibre-gl'];
    const typesOnly = ['geojson'];
    for (const { path, packages } of page)
      for (const name of packages)
        assert.ok([...served, ...typesOnly].includes(name), `${path} imports ${name}`);
    const others = sources.filter(
      ({ folder, files }) => folder !== 'console' && files.some((file) => folderOf(file) === 'console'),
    );
    assert.deepEqual(
      others.map(({ path }) => path),
      [],
    );
  });

  test('a folder has at most twenty files', () => {
    const crowded = ['src', 'test', 'bench'].flatMap((root) =>
      foldersUnder(join(SRC, '..', root))
        .map((folder) => ({ folder: relative(join(SRC, '..'), folder), files: filesIn(folder) }))
        .filter(({ files }) => files > FILES_MAX),
    );
    assert.deepEqual(crowded, []);
  });

  test('routes read from the store and leave every write to a flow', () => {
    const wrong = sources
      .filter(({ folder }) => folder === 'http')
      .flatMap(({ path, text }) =>
        [...text.matchAll(/import \{([^}]*)\} from '[./]*\/store\/[^']*'/g)]
          .flatMap(([, names = '']) => names.split(',').map((name) => name.trim()))
          .filter((name) => /^(insert|update|delete|lock|requeue|rotate|revoke|remove|record)/.test(name))
          .map((name) => `${path} imports ${name}`),
      );
    assert.deepEqual(wrong, []);
  });

  test('only the entry and the tests construct a service', () => {
    const wrong = sources.filter(
      (source) => source.files.includes('wiring.ts') && source.path !== 'main.ts' && source.folder !== 'cli',
    );
    assert.deepEqual(
      wrong.map((source) => source.path),
      [],
    );
  });

  test('pure folders do no I/O and know neither express nor the environment nor the time', () => {
    const wrong = sources
      .filter((source) => PURE.includes(source.folder))
      .flatMap((source) => [
        ...source.packages
          .filter((name) => name.startsWith('node:') && !PURE_BUILTINS.includes(name))
          .map((name) => `${source.path} imports ${name}`),
        ...source.packages
          .filter((name) =>
            ['express', 'postgres', 'ioredis', 'pino', 'prom-client', 'helmet'].includes(name),
          )
          .map((name) => `${source.path} imports ${name}`),
        ...(source.path !== CLOCK &&
        /\bDate\.now\(|\bnew Date\(\)|\bprocess\.(env|argv)|\bMath\.random\(/.test(source.text)
          ? [`${source.path} asks for the time, the environment or chance`]
          : []),
      ]);
    assert.deepEqual(wrong, []);
  });

  test('the environment is read in the entries only', () => {
    const readers = sources
      .filter((source) => /\bprocess\.env\b/.test(source.text))
      .map((source) => source.path);
    // The cluster's files only pass it on to Postgres.
    const entries = readers.filter(
      (path) => path === 'main.ts' || path.startsWith('cli/') || path.startsWith('store/embedded'),
    );
    assert.deepEqual(readers, entries);
  });

  test('there is no cycle between files', () => {
    const byPath = new Map(sources.map((source) => [source.path, source]));
    const state = new Map<string, 'open' | 'done'>();
    const cycles: string[] = [];
    const visit = (path: string, trail: readonly string[]): void => {
      if (state.get(path) === 'done') return;
      if (state.get(path) === 'open') {
        cycles.push([...trail.slice(trail.indexOf(path)), path].join(' -> '));
        return;
      }
      state.set(path, 'open');
      for (const next of byPath.get(path)?.files ?? []) visit(next, [...trail, path]);
      state.set(path, 'done');
    };
    for (const source of sources) visit(source.path, []);
    assert.deepEqual(cycles, []);
  });

  test('there is no barrel file and no drawer for everything', () => {
    const wrong = sources
      .filter(
        ({ path, text }) =>
          /(^|\/)(index|utils?|helpers?|common|misc)\.ts$/.test(path) || /^export \* from/m.test(text),
      )
      .map((source) => source.path);
    assert.deepEqual(wrong, []);
  });

  test('every import of a source file names a file that exists', () => {
    const known = new Set(sources.map((source) => source.path));
    const missing = sources.flatMap((source) =>
      source.files
        .filter((file) => !known.has(file))
        .map((file) => `${source.path} -> ${relative('.', file)}`),
    );
    assert.deepEqual(missing, []);
  });
});
