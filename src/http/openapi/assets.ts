import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { StaticFile } from '../staticFile.ts';

export const DOCS_PATH = '/api/v3/docs';
export const DESCRIPTION_PATH = '/api/v3/openapi.json';

const VIEWER = fileURLToPath(new URL('.', import.meta.resolve('swagger-ui-dist/package.json')));
const OWN = import.meta.dirname;

const SCRIPT = 'text/javascript; charset=utf-8';
const STYLE = 'text/css; charset=utf-8';

/** Every file that the pages load. No other file of these folders is served. */
const ASSETS = [
  { folder: VIEWER, name: 'swagger-ui.css', type: STYLE },
  { folder: VIEWER, name: 'swagger-ui-bundle.js', type: SCRIPT },
  { folder: VIEWER, name: 'swagger-ui-bundle.js.LICENSE.txt', type: 'text/plain; charset=utf-8' },
  { folder: VIEWER, name: 'favicon-32x32.png', type: 'image/png' },
  { folder: OWN, name: 'page.css', type: STYLE },
  { folder: OWN, name: 'start.js', type: SCRIPT },
  { folder: OWN, name: 'home.css', type: STYLE },
] as const;

export type AssetName = (typeof ASSETS)[number]['name'];

/**
 * For pages: nothing from another host, nothing inline, in no frame. The style sheet of the viewer has its icons as
 * `data:` images.
 */
export const PAGE_HEADERS = {
  'Content-Security-Policy': [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; '),
};

let readBefore: ReadonlyMap<AssetName, StaticFile> | undefined;

/** Read once in a process: they have a megabyte and a half. */
export function assets(): ReadonlyMap<AssetName, StaticFile> {
  readBefore ??= new Map(
    ASSETS.map(({ folder, name, type }) => [name, new StaticFile(readFileSync(join(folder, name)), type)]),
  );
  return readBefore;
}

/** The address of a file with its version, under which browsers may cache it without asking again. */
export function assetUrl(name: AssetName): string {
  return `${DOCS_PATH}/${name}?v=${assets().get(name)?.version}`;
}
