import type { Express } from 'express';
import { dataAnswer } from '../http/answer.ts';
import { named, onlyMethods } from '../http/expressApp.ts';
import { assetUrl, DESCRIPTION_PATH, DOCS_PATH, PAGE_HEADERS } from '../http/openapi/docsPage.ts';
import { StaticFile, serveFile } from '../http/staticFile.ts';
import { CONSOLE_PATH } from './consoleFiles.ts';

/**
 * GET /: what this service is, and where its documentation is. Browsers get a page, other clients JSON. No key is
 * needed, and no limit counts the call.
 */
export function homeRoute(app: Express): void {
  const page = serveFile(new StaticFile(Buffer.from(PAGE), 'text/html; charset=utf-8'), {
    ...PAGE_HEADERS,
    Vary: 'Accept, Accept-Encoding',
  });
  const json = serveFile(new StaticFile(Buffer.from(JSON_TEXT), 'application/json; charset=utf-8'), {
    Vary: 'Accept, Accept-Encoding',
  });
  app.all(ROOT, named('/'), onlyMethods('GET', 'HEAD'), (request, response, next) =>
    (request.accepts('json', 'html') === 'html' ? page : json)(request, response, next),
  );
}

/** A regular expression, since the text "/" would also match two slashes. */
const ROOT = /^\/$/;

const JSON_TEXT = dataAnswer({
  service: 'Fleet Tracking Service',
  console: CONSOLE_PATH,
  docs: DOCS_PATH,
  openapi: DESCRIPTION_PATH,
}).body;

const PAGE = `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Fleet Tracking Service</title>
<link rel="icon" type="image/png" href="${assetUrl('favicon-32x32.png')}">
<link rel="stylesheet" href="${assetUrl('home.css')}">
</head>
<body>
<main>
<h1>Fleet Tracking Service</h1>
<p>An HTTP API that tracks vehicles: positions, nearest devices, geofences and signed webhooks.</p>
<ul>
<li><a href="${CONSOLE_PATH}">Console</a>: see your fleet, log in with e-mail and password.</li>
<li><a href="${DOCS_PATH}">API documentation</a>: read every route, and try it with your key.</li>
<li><a href="${DESCRIPTION_PATH}">OpenAPI description</a>: generate a client from it.</li>
</ul>
</main>
</body>
</html>
`;
