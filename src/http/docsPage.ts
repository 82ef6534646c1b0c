import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { Express, RequestHandler } from 'express';
import { errorAnswer } from './answer.ts';
import { named } from './measure.ts';
import { onlyMethods } from './methodAnswer.ts';
import type { ApiDocument } from './openapi/document.ts';
import { send } from './send.ts';
import { StaticFile, serveFile } from './staticFile.ts';

const DESCRIPTION_PATH = '/api/v3/openapi.json';
const PAGE_PATH = '/api/v3/docs';

const VIEWER = fileURLToPath(new URL('.', import.meta.resolve('swagger-ui-dist/package.json')));
const OWN = join(import.meta.dirname, 'docs');

const SCRIPT = 'text/javascript; charset=utf-8';
const STYLE = 'text/css; charset=utf-8';

/** All that the page needs; nothing else of these folders can be had. */
const ASSETS = [
  { folder: VIEWER, name: 'swagger-ui.css', type: STYLE },
  { folder: VIEWER, name: 'swagger-ui-bundle.js', type: SCRIPT },
  { folder: VIEWER, name: 'swagger-ui-bundle.js.LICENSE.txt', type: 'text/plain; charset=utf-8' },
  { folder: VIEWER, name: 'favicon-32x32.png', type: 'image/png' },
  { folder: OWN, name: 'page.css', type: STYLE },
  { folder: OWN, name: 'start.js', type: SCRIPT },
] as const;

type AssetName = (typeof ASSETS)[number]['name'];

/** Nothing from another host, nothing inline, in no frame; images as data are the icons of the viewer's style sheet. */
const CONTENT_SECURITY_POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "img-src 'self' data:",
  "connect-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
].join('; ');

/**
 * The description and its page, for everybody: GET /api/v3/openapi.json, and GET /api/v3/docs with the files that
 * the page loads. Made once, so a request only sends bytes.
 */
export function docsRoutes(app: Express, document: ApiDocument): void {
  const description = new StaticFile(
    Buffer.from(JSON.stringify(document)),
    'application/json; charset=utf-8',
  );
  const assets = readAssets();
  const page = new StaticFile(Buffer.from(pageHtml(assets)), 'text/html; charset=utf-8');

  const serve = (path: string, ...handlers: readonly RequestHandler[]): void => {
    app.all(path, named(path), onlyMethods('GET', 'HEAD'), ...handlers);
  };
  serve(DESCRIPTION_PATH, serveFile(description));
  serve(PAGE_PATH, serveFile(page, { 'Content-Security-Policy': CONTENT_SECURITY_POLICY }));
  for (const [name, file] of assets) serve(`${PAGE_PATH}/${name}`, serveFile(file));
  app.use(PAGE_PATH, (request, response) => send(response, errorAnswer('NOT_FOUND'), request.method));
}

let readBefore: ReadonlyMap<AssetName, StaticFile> | undefined;

/** Once in a process: they are a megabyte and a half. */
function readAssets(): ReadonlyMap<AssetName, StaticFile> {
  readBefore ??= new Map(
    ASSETS.map(({ folder, name, type }) => [name, new StaticFile(readFileSync(join(folder, name)), type)]),
  );
  return readBefore;
}

function pageHtml(assets: ReadonlyMap<AssetName, StaticFile>): string {
  const url = (name: AssetName) => `${PAGE_PATH}/${name}?v=${assets.get(name)?.version}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Fleet Tracking Service API</title>
<link rel="icon" type="image/png" href="${url('favicon-32x32.png')}">
<link rel="stylesheet" href="${url('swagger-ui.css')}">
<link rel="stylesheet" href="${url('page.css')}">
</head>
<body>
<noscript>This page needs JavaScript. The description itself is at <a href="${DESCRIPTION_PATH}">${DESCRIPTION_PATH}</a>.</noscript>
<div id="docs" data-description="${DESCRIPTION_PATH}"></div>
<script src="${url('swagger-ui-bundle.js')}"></script>
<script src="${url('start.js')}"></script>
</body>
</html>
`;
}
