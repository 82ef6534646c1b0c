import type { Express, RequestHandler } from 'express';
import { errorAnswer, send } from '../http/answer.ts';
import { named, onlyMethods } from '../http/expressApp.ts';
import { assetUrl, PAGE_HEADERS } from '../http/openapi/docsPage.ts';
import { StaticFile, serveFile } from '../http/staticFile.ts';
import {
  CONSOLE_PATH,
  type ConsoleFiles,
  readConsoleFiles,
  SHARE_ENTRY,
  WORKER_PATH,
} from './consoleFiles.ts';
import type { ConsoleTiles, PageTiles, TileArchive } from './consoleTiles.ts';
import { readPageTiles, tileRoute } from './consoleTiles.ts';
import { WORLD_TEMPLATE, type WorldTilePorts, worldTileRoute } from './world/worldTiles.ts';

export interface ConsolePorts extends WorldTilePorts {
  readonly consoleTiles: ConsoleTiles | null;
  readonly log: { error(fields: object, message: string): void };
}

/** A page, and the files that it and others load. */
export interface ConsolePage {
  readonly page: RequestHandler;
  readonly files: ReadonlyMap<string, RequestHandler>;
  readonly archive: TileArchive | null;
  /** The page of links to vehicles (sharePage.ts), and the policy of both. */
  readonly sharePage: string;
  readonly policy: Readonly<Record<string, string>>;
}

/** By the JSON of the tiles: pods in one process may have different ones. */
const madeBefore = new Map<string, Promise<ConsolePage>>();
let filesRead: Promise<ConsoleFiles> | null = null;

/**
 * GET /console and the files that the page loads. No key is needed: the page logs in. Everything is read once in a
 * process, when it is first asked for: a pod whose console is not used does not spend time on it.
 */
export function consoleRoutes(app: Express, ports: ConsolePorts): void {
  const get = onlyMethods('GET', 'HEAD');
  const made = () => consolePage(ports);
  app.all(CONSOLE_PATH, named(CONSOLE_PATH), get, async (request, response, next) =>
    (await made()).page(request, response, next),
  );
  tileRoute(app, get, async () => (await made()).archive);
  worldTileRoute(app, get, ports);
  app.all(`${CONSOLE_PATH}/*file`, named(`${CONSOLE_PATH}/*file`), get, async (request, response, next) => {
    const serve = (await made()).files.get(request.path.slice(CONSOLE_PATH.length + 1));
    if (serve === undefined) send(response, errorAnswer('NOT_FOUND'), request.method);
    else await serve(request, response, next);
  });
}

/** What is served of the console; read once in a process, when it is first asked for. */
export function consolePage({ consoleTiles, log }: ConsolePorts): Promise<ConsolePage> {
  const name = JSON.stringify(consoleTiles);
  const before = madeBefore.get(name);
  if (before !== undefined) return before;
  const onError = (err: unknown): void => log.error({ err }, 'the tiles of CONSOLE_TILES cannot be read');
  filesRead ??= readConsoleFiles();
  const made = Promise.all([filesRead, readPageTiles(consoleTiles, onError)]).then(makePage);
  madeBefore.set(name, made);
  return made;
}

function makePage([console, tiles]: readonly [ConsoleFiles, PageTiles]): ConsolePage {
  const policy = policyOf(console, tiles);
  const html = new StaticFile(Buffer.from(pageHtml(console, tiles, CONSOLE)), 'text/html; charset=utf-8');
  // The worker of the map fetches tiles under the policy of its own file.
  const headersOf = (path: string) => (path === WORKER_PATH ? policy : {});
  return {
    page: serveFile(html, policy),
    files: new Map([...console.files].map(([path, file]) => [path, serveFile(file, headersOf(path))])),
    archive: tiles.archive,
    sharePage: pageHtml(console, tiles, SHARE),
    policy,
  };
}

function policyOf({ importMapHash }: ConsoleFiles, { origin }: PageTiles): Record<string, string> {
  const policy = PAGE_HEADERS['Content-Security-Policy'].replace(
    "script-src 'self'",
    `script-src 'self' ${importMapHash}`,
  );
  const connect = "connect-src 'self'";
  return {
    'Content-Security-Policy': origin === null ? policy : policy.replace(connect, `${connect} ${origin}`),
  };
}

const CONSOLE = {
  title: 'Fleet console',
  entry: 'main.ts',
  head: '',
  noscript: 'The console needs JavaScript. Everything that it shows is in the API, too.',
};
const SHARE = {
  title: 'Shared vehicles',
  entry: SHARE_ENTRY,
  head: '<meta name="robots" content="noindex">\n<meta name="referrer" content="no-referrer">\n',
  noscript: 'The map needs JavaScript.',
};

function pageHtml(
  { importMap, modules, address }: ConsoleFiles,
  { json }: PageTiles,
  { title, entry, head, noscript }: typeof CONSOLE,
): string {
  const early = entry === SHARE_ENTRY ? [address(entry)] : modules;
  const preloads = early.map((module) => `<link rel="modulepreload" href="${module}">`).join('\n');
  const tiles =
    json === null ? '' : ` data-tiles="${json.replace(/[&"<]/g, (sign) => `&#${sign.charCodeAt(0)};`)}"`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>${title}</title>
${head}<link rel="icon" type="image/png" href="${assetUrl('favicon-32x32.png')}">
<link rel="stylesheet" href="${address('console.css')}">
<script type="importmap">${importMap}</script>
${preloads}
</head>
<body>
<noscript>${noscript}</noscript>
<div id="console" data-world="${WORLD_TEMPLATE}"${tiles}></div>
<script type="module" src="${address(entry)}"></script>
</body>
</html>
`;
}
