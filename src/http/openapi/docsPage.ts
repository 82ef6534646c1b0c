import type { Express, RequestHandler } from 'express';
import { errorAnswer } from '../answer.ts';
import { named, onlyMethods, send } from '../expressApp.ts';
import { StaticFile, serveFile } from '../staticFile.ts';
import { assets, assetUrl, DESCRIPTION_PATH, DOCS_PATH, PAGE_HEADERS } from './assets.ts';
import type { ApiDocument } from './document.ts';

/**
 * The description and its page, without a key: GET /api/v3/openapi.json, and GET /api/v3/docs with the files that the
 * page loads. Everything is made at the start, so a request only sends bytes.
 */
export function docsRoutes(app: Express, document: ApiDocument): void {
  const description = new StaticFile(
    Buffer.from(JSON.stringify(document)),
    'application/json; charset=utf-8',
  );
  const page = new StaticFile(Buffer.from(pageHtml()), 'text/html; charset=utf-8');

  const serve = (path: string, handler: RequestHandler): void => {
    app.all(path, named(path), onlyMethods('GET', 'HEAD'), handler);
  };
  serve(DESCRIPTION_PATH, serveFile(description));
  serve(DOCS_PATH, serveFile(page, PAGE_HEADERS));
  for (const [name, file] of assets()) serve(`${DOCS_PATH}/${name}`, serveFile(file));
  app.use(DOCS_PATH, (request, response) => send(response, errorAnswer('NOT_FOUND'), request.method));
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
