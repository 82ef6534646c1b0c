import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { StaticFile } from '../server/staticFile.ts';

export const CONSOLE_PATH = '/console';

const OWN = join(import.meta.dirname, '..', '..', 'console');
const SCRIPT = 'text/javascript; charset=utf-8';
const STYLE = 'text/css; charset=utf-8';

/** The packages of the page: the name that its modules import, and the module. No other file of them is served. */
const PACKAGES = {
  preact: ['preact/package.json', 'dist/preact.mjs'],
  'preact/hooks': ['preact/package.json', 'hooks/dist/hooks.mjs'],
  htm: ['htm', ''],
  '@preact/signals': ['@preact/signals', ''],
  '@preact/signals-core': ['@preact/signals-core', ''],
} as const;

export interface ConsoleFiles {
  /** By the path below /console/. */
  readonly files: ReadonlyMap<string, StaticFile>;
  /** JSON: the name or path of each module to its address with its version, which browsers may cache for ever. */
  readonly importMap: string;
  /** The Content-Security-Policy source that lets the import map stand in the page, and nothing else. */
  readonly importMapHash: string;
  /** Addresses of all modules, so that they are loaded at once and not one level of imports after another. */
  readonly modules: readonly string[];
  address(path: string): string;
}

/** Reads everything that the page loads, and takes the types out of its modules. */
export function readConsoleFiles(): ConsoleFiles {
  const files = new Map<string, StaticFile>();
  const imports: Record<string, string> = {};
  const address = (path: string): string => `${CONSOLE_PATH}/${path}?v=${files.get(path)?.version}`;
  const addModule = (path: string, text: string, name: string): void => {
    files.set(path, new StaticFile(Buffer.from(text), SCRIPT));
    imports[name] = address(path);
  };
  for (const [name, [from, file]] of Object.entries(PACKAGES)) {
    const at = fileURLToPath(new URL(file, import.meta.resolve(from)));
    addModule(`packages/${name.replace('/', '-')}.mjs`, withoutMap(readFileSync(at, 'utf8')), name);
  }
  for (const path of readdirSync(OWN, { recursive: true, encoding: 'utf8' }).sort()) {
    const text = () => readFileSync(join(OWN, path), 'utf8');
    if (path.endsWith('.ts')) addModule(path, withoutTypes(text()), `${CONSOLE_PATH}/${path}`);
    if (path.endsWith('.css')) files.set(path, new StaticFile(Buffer.from(text()), STYLE));
  }
  const importMap = JSON.stringify({ imports });
  const hash = createHash('sha256').update(importMap).digest('base64');
  return { files, importMap, importMapHash: `'sha256-${hash}'`, modules: Object.values(imports), address };
}

/** Node warns that this function may change. Its version is pinned, and whoever runs the service can do nothing about it. */
function withoutTypes(text: string): string {
  const { emitWarning } = process;
  process.emitWarning = () => undefined;
  try {
    return stripTypeScriptTypes(text);
  } finally {
    process.emitWarning = emitWarning;
  }
}

/** The maps of the packages are not served, and developer tools would report each as missing. */
function withoutMap(text: string): string {
  return text.replace(/\n?\/\/# sourceMappingURL=\S+\s*$/, '\n');
}
