import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { fileURLToPath } from 'node:url';
import { StaticFile } from '../http/staticFile.ts';

export const CONSOLE_PATH = '/console';
/** What the page of a share begins with; the console does not load it. */
export const SHARE_ENTRY = 'share.ts';

const OWN = join(import.meta.dirname, 'page');
const SCRIPT = 'text/javascript; charset=utf-8';
const STYLE = 'text/css; charset=utf-8';

/** Quality of brotli. A megabyte takes 50 ms at 8, 0.6 s at 10, which saves 7 %, and 1.4 s at 11, which saves 9 %. */
const QUALITY = { large: 10, small: 11 };
const LARGE_BYTES = 200_000;

/** The packages of the page: the name that its modules import, and the module. No other file of them is served. */
const PACKAGES = {
  preact: ['preact/package.json', 'dist/preact.mjs'],
  'preact/hooks': ['preact/package.json', 'hooks/dist/hooks.mjs'],
  htm: ['htm', ''],
  '@preact/signals': ['@preact/signals', ''],
  '@preact/signals-core': ['@preact/signals-core', ''],
  'maplibre-gl': ['maplibre-gl/package.json', 'dist/maplibre-gl.mjs'],
} as const;

export const WORKER_PATH = 'packages/maplibre-gl-worker.mjs';

/** Run by the map in threads of its own, so the page itself does not import it: it only asks for its address. */
const WORKER = ['maplibre-gl/package.json', 'dist/maplibre-gl-worker.mjs'] as const;

export interface ConsoleFiles {
  /** By the path below /console/. */
  readonly files: ReadonlyMap<string, StaticFile>;
  /** JSON that maps each module, and each file a module uses, to its versioned address, which browsers keep forever. */
  readonly importMap: string;
  /** The Content-Security-Policy source that allows the import map in the page and nothing else. */
  readonly importMapHash: string;
  /** Addresses of all modules, so that they are loaded at once and not one level of imports after another. */
  readonly modules: readonly string[];
  address(path: string): string;
}

/** Reads everything that the page loads, and takes the types out of its modules. Calls are answered in between. */
export async function readConsoleFiles(): Promise<ConsoleFiles> {
  const files = new Map<string, StaticFile>();
  const imports: Record<string, string> = {};
  const address = (path: string): string => `${CONSOLE_PATH}/${path}?v=${files.get(path)?.version}`;
  const add = (path: string, text: string, contentType: string): void => {
    const bytes = Buffer.from(text);
    const quality = bytes.length < LARGE_BYTES ? QUALITY.small : QUALITY.large;
    files.set(path, new StaticFile(bytes, contentType, quality));
  };
  const addAsked = (path: string, text: string, contentType: string, name: string): void => {
    add(path, text, contentType);
    imports[name] = address(path);
  };
  for (const [name, from] of Object.entries(PACKAGES)) {
    addAsked(`packages/${name.replace('/', '-')}.mjs`, packageText(from), SCRIPT, name);
    await nextTurn();
  }
  for (const path of readdirSync(OWN, { recursive: true, encoding: 'utf8' }).sort()) {
    const text = () => readFileSync(join(OWN, path), 'utf8');
    if (path.endsWith('.ts'))
      addAsked(path, withoutComments(withoutTypes(text())), SCRIPT, `${CONSOLE_PATH}/${path}`);
    if (path.endsWith('.css')) add(path, text(), STYLE);
    await nextTurn();
  }
  const modules = Object.values(imports).filter((module) => module !== address(SHARE_ENTRY));
  addAsked(WORKER_PATH, packageText(WORKER), SCRIPT, 'maplibre-gl/worker');
  const importMap = JSON.stringify({ imports });
  const hash = createHash('sha256').update(importMap).digest('base64');
  return { files, importMap, importMapHash: `'sha256-${hash}'`, modules, address };
}

/** Suppresses Node's warning that this function may change: the version of Node is pinned, and operators cannot act. */
function withoutTypes(text: string): string {
  const { emitWarning } = process;
  process.emitWarning = () => undefined;
  try {
    return stripTypeScriptTypes(text);
  } finally {
    process.emitWarning = emitWarning;
  }
}

/**
 * Comments on lines of their own, and what the types have left at the end of lines: a tenth of what our modules weigh.
 * Lines within a text must not begin like a comment.
 */
export function withoutComments(text: string): string {
  const kept: string[] = [];
  let isComment = false;
  for (const line of text.split('\n')) {
    const trimmed = line.trim();
    isComment ||= trimmed.startsWith('/**');
    if (!isComment && trimmed !== '' && !trimmed.startsWith('//')) kept.push(line.trimEnd());
    if (trimmed.endsWith('*/')) isComment = false;
  }
  return `${kept.join('\n')}\n`;
}

function packageText([from, file]: readonly [string, string]): string {
  return withoutMap(readFileSync(fileURLToPath(new URL(file, import.meta.resolve(from))), 'utf8'));
}

/** The maps of the packages are not served, and developer tools would report each as missing. */
function withoutMap(text: string): string {
  return text.replace(/\n?\/\/# sourceMappingURL=\S+\s*$/, '\n');
}
