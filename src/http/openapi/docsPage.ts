import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Express, RequestHandler } from 'express';
import { errorAnswer, send } from '../answer.ts';
import { named, onlyMethods } from '../expressApp.ts';
import { StaticFile, serveFile } from '../staticFile.ts';
import type { ApiDocument } from './document.ts';

/**
 * The description and its page, without a key: GET /api/v3/openapi.json, and GET /api/v3/docs with the files that the
 * page loads. Everything is made at the start, so a request only sends bytes.
 */
export function docsRoutes(app: Express, describe: () => ApiDocument): void {
  const page = new StaticFile(Buffer.from(pageHtml()), 'text/html; charset=utf-8');

  const serve = (path: string, handler: RequestHandler): void => {
    app.all(path, named(path), onlyMethods('GET', 'HEAD'), handler);
  };
  serve(DESCRIPTION_PATH, serveFile(description(describe)));
  serve(DOCS_PATH, serveFile(page, PAGE_HEADERS));
  for (const [name, file] of assets()) serve(`${DOCS_PATH}/${name}`, serveFile(file));
  app.use(DOCS_PATH, (request, response) => send(response, errorAnswer('NOT_FOUND'), request.method));
}

let described: StaticFile | undefined;

/** Made once in a process: all its pods have the same routes, and writing the description takes 20 ms. */
function description(describe: () => ApiDocument): StaticFile {
  described ??= new StaticFile(Buffer.from(JSON.stringify(describe())), 'application/json; charset=utf-8');
  return described;
}

function pageHtml(): string {
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Fleet Tracking Service API</title>
<link rel="icon" type="image/png" href="${assetUrl('favicon-32x32.png')}">
<link rel="stylesheet" href="${assetUrl('swagger-ui.css')}">
<link rel="stylesheet" href="${assetUrl('page.css')}">
</head>
<body>
<noscript>This page needs JavaScript. The description itself is at <a href="${DESCRIPTION_PATH}">${DESCRIPTION_PATH}</a>.</noscript>
<div id="docs" data-description="${DESCRIPTION_PATH}"></div>
<script src="${assetUrl('swagger-ui-bundle.js')}"></script>
<script src="${assetUrl('start.js')}"></script>
</body>
</html>
`;
}

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

type AssetName = (typeof ASSETS)[number]['name'];

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
function assets(): ReadonlyMap<AssetName, StaticFile> {
  readBefore ??= new Map(
    ASSETS.map(({ folder, name, type }) => [name, new StaticFile(readFileSync(join(folder, name)), type)]),
  );
  return readBefore;
}

/** The address of a file with its version, under which browsers may cache it without asking again. */
export function assetUrl(name: AssetName): string {
  return `${DOCS_PATH}/${name}?v=${assets().get(name)?.version}`;
}
