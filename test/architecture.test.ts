import assert from 'node:assert/strict';
import { readdirSync, readFileSync } from 'node:fs';
import { dirname, join, normalize, relative } from 'node:path';
import { describe, test } from 'node:test';

const ROOT = join(import.meta.dirname, '..');
const SRC = join(ROOT, 'src');

/**
 * The folders of src from the lowest to the highest. A folder imports only from those before it, so no two import each
 * other, directly or by way of others. The files of src itself (`.`) construct a pod out of all.
 */
const ORDER = [
  'lib',
  'traces',
  'geo',
  'postgres',
  'redis',
  'changelog',
  'access',
  'http',
  'tenants',
  'devices',
  'areas',
  'events',
  'history',
  'webhooks',
  'feeds',
  'shares',
  'ingest',
  'explain',
  'console',
  'coherence',
  '.',
  'cli',
];
/** Files of src itself that hold nothing but a type or a constant, which any folder may know. */
const KNOWN_TO_ALL = ['config.ts', 'version.ts'];

/** The console is a program of its own, in the browser: it imports nothing of the service. */
const PAGE = 'console/page';
const PAGE_PACKAGES = ['preact', 'preact/hooks', 'htm', '@preact/signals', 'maplibre-gl', 'geojson'];

/** What a file may do is told by the end of its name. */
type Role = 'pure' | 'sql' | 'memory' | 'routes' | 'acts';
const PURE_BUILTINS = ['node:crypto', 'node:net', 'node:util', 'node:zlib', 'node:buffer'];
const IO_PACKAGES = [
  ...['express', 'helmet', 'pg', 'pg-copy-streams', 'ioredis', 'pino', 'prom-client'],
  ...['@opentelemetry/exporter-trace-otlp-http', '@opentelemetry/sdk-trace'],
];
/** What few processes need, by where they start: those load it that do, since each of these takes up to a tenth of a start. */
const LOADED_LATER = {
  'main.ts': ['node:http', 'ioredis', 'pino-pretty', '@opentelemetry/sdk-trace'],
  'cli/fleet.ts': ['node:http', 'node:https', 'ioredis', 'express', 'selfsigned', 'stream-json'],
};
/** The one clock. */
const CLOCK = 'lib/clock.ts';

/** More cannot be taken in at a glance. */
const FILES_MAX = 20;
const LINES_MAX = 400;
const SRC_FILES_MAX = 460;

interface Source {
  readonly path: string;
  readonly folder: string;
  readonly text: string;
  /** Imported files of src, relative to it. */
  readonly files: readonly string[];
  /** Those of them that are imported for more than types. */
  readonly valueFiles: readonly string[];
  readonly packages: readonly string[];
  /** Files and packages that are loaded before it runs. */
  readonly loads: readonly string[];
}

const sources: readonly Source[] = readdirSync(SRC, { recursive: true, encoding: 'utf8' })
  .filter((path) => path.endsWith('.ts'))
  .map(readSource);
const byPath = new Map(sources.map((source) => [source.path, source]));
const service = sources.filter(({ path }) => !path.startsWith(`${PAGE}/`));

function readSource(path: string): Source {
  const text = readFileSync(join(SRC, path), 'utf8');
  const imports = [
    ...text.matchAll(
      /(?:^|\n)\s*(?:import|export)\s(?<what>[^;]*?)from\s+'(?<from>[^']+)'|import\('(?<later>[^']+)'\)/g,
    ),
  ].map(({ groups = {} }) => ({
    name: (groups['from'] ?? groups['later']) as string,
    what: groups['what'] ?? '',
    isLater: groups['later'] !== undefined,
  }));
  const isFile = ({ name }: { name: string }) => name.startsWith('.');
  const toFile = ({ name }: { name: string }) => normalize(join(dirname(path), name));
  const own = imports.filter(isFile);
  return {
    path,
    folder: folderOf(path),
    text,
    files: own.map(toFile),
    valueFiles: own.filter(({ what }) => !isOfTypes(what)).map(toFile),
    packages: imports.filter((each) => !isFile(each)).map(({ name }) => name),
    loads: imports
      .filter(({ what, isLater }) => !isLater && !isOfTypes(what))
      .map((each) => (isFile(each) ? toFile(each) : each.name)),
  };
}

/** `type X`, `type { X }` and `{ type X, type Y }` are gone when the program runs. */
function isOfTypes(what: string): boolean {
  if (what.startsWith('type ')) return true;
  const names = what
    .match(/^\{(.*)\}\s*$/s)?.[1]
    ?.split(',')
    .map((name) => name.trim())
    .filter(Boolean) ?? [''];
  return names.every((name) => name.startsWith('type '));
}

function folderOf(path: string): string {
  const [first = '', ...rest] = path.split('/');
  return rest.length === 0 ? '.' : first;
}

/** The role that the name of a file states; without one it is pure unless it does I/O, which `acts` says. */
function roleOf({ path, packages, valueFiles, text }: Source): Role {
  const named = path.match(/\.(sql|memory|routes)\.ts$/)?.[1];
  if (named !== undefined) return named as Role;
  const isActing =
    packages.some(
      (name) => IO_PACKAGES.includes(name) || (name.startsWith('node:') && !PURE_BUILTINS.includes(name)),
    ) ||
    valueFiles.some(
      (file) => /\.(sql|routes)\.ts$/.test(file) || /^(postgres|redis|coherence)\//.test(file),
    ) ||
    /\bSql\b|\bTx\b|\bawait\b|setTimeout|setInterval/.test(text);
  return isActing ? 'acts' : 'pure';
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

/** Every chain of `next` that comes back to where it began, as text. */
function circlesOf(nodes: Iterable<string>, next: (node: string) => Iterable<string>): string[] {
  const state = new Map<string, 'open' | 'done'>();
  const circles: string[] = [];
  const visit = (node: string, trail: readonly string[]): void => {
    if (state.get(node) === 'done') return;
    if (state.get(node) === 'open') {
      circles.push([...trail.slice(trail.indexOf(node)), node].join(' -> '));
      return;
    }
    state.set(node, 'open');
    for (const each of next(node)) visit(each, [...trail, node]);
    state.set(node, 'done');
  };
  for (const node of nodes) visit(node, []);
  return circles;
}

describe('the structure of src', () => {
  test('there is something to look at', () => {
    assert.ok(sources.length > 50);
    assert.ok(sources.some((source) => source.files.length > 3));
    for (const role of ['pure', 'sql', 'memory', 'routes', 'acts'])
      assert.ok(
        service.some((source) => roleOf(source) === role),
        `there is a file of the role ${role}`,
      );
  });

  test('a folder imports only from those below it', () => {
    const wrong = service.flatMap(({ path, folder, files }) =>
      files
        .filter((file) => folderOf(file) !== folder && !KNOWN_TO_ALL.includes(file))
        .filter((file) => ORDER.indexOf(folderOf(file)) > ORDER.indexOf(folder) || !ORDER.includes(folder))
        .map((file) => `${path} -> ${file}`),
    );
    assert.deepEqual(wrong, []);
  });

  test('folders form no circle, nor do files', () => {
    const folders = new Map<string, Set<string>>();
    for (const { folder, files } of service) {
      const known = folders.get(folder) ?? new Set();
      for (const file of files)
        if (folderOf(file) !== folder && !KNOWN_TO_ALL.includes(file)) known.add(folderOf(file));
      folders.set(folder, known);
    }
    assert.deepEqual(
      circlesOf(folders.keys(), (folder) => folders.get(folder) ?? []),
      [],
    );
    assert.deepEqual(
      circlesOf(byPath.keys(), (path) => byPath.get(path)?.files ?? []),
      [],
    );
  });

  test('the page of the console stands apart: nothing imports it, and it has its packages from a list', () => {
    const page = sources.filter(({ path }) => path.startsWith(`${PAGE}/`));
    assert.ok(page.length > 10);
    for (const { path, packages, files } of page) {
      for (const name of packages) assert.ok(PAGE_PACKAGES.includes(name), `${path} imports ${name}`);
      for (const file of files) assert.ok(file.startsWith(`${PAGE}/`), `${path} imports ${file}`);
    }
    const others = service.filter(({ files }) => files.some((file) => file.startsWith(`${PAGE}/`)));
    assert.deepEqual(
      others.map(({ path }) => path),
      [],
    );
  });

  test('what decides and what remembers does no I/O and knows neither express nor the environment nor the time', () => {
    const wrong = service
      .filter((source) => ['pure', 'memory'].includes(roleOf(source)))
      .flatMap(({ path, packages, valueFiles, text }) => [
        ...packages
          .filter(
            (name) =>
              IO_PACKAGES.includes(name) || (name.startsWith('node:') && !PURE_BUILTINS.includes(name)),
          )
          .map((name) => `${path} imports ${name}`),
        ...valueFiles
          .filter((file) => /\.(sql|routes)\.ts$/.test(file))
          .map((file) => `${path} imports ${file}`),
        ...(path !== CLOCK && /\bDate\.now\(|\bnew Date\(\)|\bprocess\.(env|argv)|\bMath\.random\(/.test(text)
          ? [`${path} asks for the time, the environment or chance`]
          : []),
      ]);
    assert.deepEqual(wrong, []);
  });

  test('statements are written in files of statements, and in the client itself', () => {
    const wrong = service
      .filter((source) => roleOf(source) !== 'sql' && !source.path.startsWith('postgres/'))
      .filter(({ text }) =>
        /\b(?:sql|tx)(?:<[^`]*>)?`\s*(?:select|insert|update|delete|with|copy)\b/i.test(text),
      )
      .map(({ path }) => path);
    assert.deepEqual(wrong, []);
  });

  test('routes read, and leave every write to a function that says so', () => {
    const wrong = service
      .filter((source) => roleOf(source) === 'routes')
      .flatMap(({ path, text }) =>
        [...text.matchAll(/import \{([^}]*)\} from '[./]*\/[^']*\.sql\.ts'/g)]
          .flatMap(([, names = '']) => names.split(',').map((name) => name.trim()))
          .filter((name) => /^(insert|update|delete|lock|requeue|rotate|revoke|remove|record)/.test(name))
          .map((name) => `${path} imports ${name}`),
      );
    assert.deepEqual(wrong, []);
  });

  test('only the entry, the commands and the tests construct a service', () => {
    const wrong = service.filter(
      ({ path, folder, files }) => files.includes('wiring.ts') && path !== 'main.ts' && folder !== 'cli',
    );
    assert.deepEqual(
      wrong.map(({ path }) => path),
      [],
    );
  });

  test('coherence applies changes to all parts, and only what constructs a pod knows it', () => {
    const wrong = service.filter(
      ({ folder, files }) =>
        folder !== '.' && folder !== 'coherence' && files.some((file) => folderOf(file) === 'coherence'),
    );
    assert.deepEqual(
      wrong.map(({ path }) => path),
      [],
    );
  });

  test('the environment is read in the entries only', () => {
    const readers = sources.filter(({ text }) => /\bprocess\.env\b/.test(text)).map(({ path }) => path);
    // The cluster's files only pass it on to Postgres.
    const entries = readers.filter(
      (path) => path === 'main.ts' || path.startsWith('cli/') || path.startsWith('postgres/embedded'),
    );
    assert.deepEqual(readers, entries);
  });

  test('a folder has at most twenty files, and a file of src at most four hundred lines', () => {
    const crowded = ['src', 'bench'].flatMap((root) =>
      foldersUnder(join(ROOT, root))
        .map((folder) => ({ folder: relative(ROOT, folder), files: filesIn(folder) }))
        .filter(({ files }) => files > FILES_MAX),
    );
    assert.deepEqual(crowded, []);
    const long = sources.filter(({ text }) => text.split('\n').length > LINES_MAX).map(({ path }) => path);
    assert.deepEqual(long, []);
    assert.ok(sources.length <= SRC_FILES_MAX, `src has ${sources.length} files`);
  });

  test('there is no barrel file and no drawer for everything', () => {
    const wrong = sources
      .filter(
        ({ path, text }) =>
          /(^|\/)(index|utils?|helpers?|common|misc)\.ts$/.test(path) || /^export \* from/m.test(text),
      )
      .map(({ path }) => path);
    assert.deepEqual(wrong, []);
  });

  test('a start loads nothing that few processes need', () => {
    for (const [start, later] of Object.entries(LOADED_LATER)) {
      const loaded = new Set([start]);
      for (const name of loaded) for (const next of byPath.get(name)?.loads ?? []) loaded.add(next);
      assert.ok(loaded.has('pg') && loaded.has('lib/time.ts'), start);
      assert.deepEqual(
        later.filter((name) => loaded.has(name)),
        [],
        start,
      );
    }
  });

  test('every import of a source file names a file that exists', () => {
    const missing = sources.flatMap(({ path, files }) =>
      files.filter((file) => !byPath.has(file)).map((file) => `${path} -> ${file}`),
    );
    assert.deepEqual(missing, []);
  });
});
