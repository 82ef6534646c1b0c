import type { Express, RequestHandler } from 'express';
import { errorAnswer } from '../answers/answer.ts';
import { assetUrl, PAGE_HEADERS } from '../docs/assets.ts';
import { named } from '../server/measure.ts';
import { onlyMethods } from '../server/methodAnswer.ts';
import { send } from '../server/send.ts';
import { StaticFile, serveFile } from '../server/staticFile.ts';
import { CONSOLE_PATH, type ConsoleFiles, readConsoleFiles } from './consoleFiles.ts';

interface ConsolePage {
  readonly page: RequestHandler;
  readonly files: ReadonlyMap<string, RequestHandler>;
}

let madeBefore: ConsolePage | undefined;

/**
 * GET /console and the files that the page loads. No key is needed: the page logs in. Everything is read once in a
 * process, when it is first asked for: a pod whose console nobody opens does not wait for it.
 */
export function consoleRoutes(app: Express): void {
  const get = onlyMethods('GET', 'HEAD');
  app.all(CONSOLE_PATH, named(CONSOLE_PATH), get, (request, response, next) =>
    made().page(request, response, next),
  );
  app.all(`${CONSOLE_PATH}/*file`, named(`${CONSOLE_PATH}/*file`), get, (request, response, next) => {
    const serve = made().files.get(request.path.slice(CONSOLE_PATH.length + 1));
    if (serve === undefined) send(response, errorAnswer('NOT_FOUND'), request.method);
    else serve(request, response, next);
  });
}

function made(): ConsolePage {
  madeBefore ??= makePage(readConsoleFiles());
  return madeBefore;
}

function makePage(console: ConsoleFiles): ConsolePage {
  const policy = PAGE_HEADERS['Content-Security-Policy'].replace(
    "script-src 'self'",
    `script-src 'self' ${console.importMapHash}`,
  );
  const html = new StaticFile(Buffer.from(pageHtml(console)), 'text/html; charset=utf-8');
  return {
    page: serveFile(html, { 'Content-Security-Policy': policy }),
    files: new Map([...console.files].map(([path, file]) => [path, serveFile(file)])),
  };
}

function pageHtml({ importMap, modules, address }: ConsoleFiles): string {
  const preloads = modules.map((module) => `<link rel="modulepreload" href="${module}">`).join('\n');
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>Fleet console</title>
<link rel="icon" type="image/png" href="${assetUrl('favicon-32x32.png')}">
<link rel="stylesheet" href="${address('console.css')}">
<script type="importmap">${importMap}</script>
${preloads}
</head>
<body>
<noscript>The console needs JavaScript. Everything that it shows is in the API, too.</noscript>
<div id="console"></div>
<script type="module" src="${address('main.ts')}"></script>
</body>
</html>
`;
}
