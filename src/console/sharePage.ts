import type { Express, Request, Response } from 'express';
import { type Answer, send } from '../http/answer.ts';
import { named, onlyMethods } from '../http/expressApp.ts';
import { assetUrl, PAGE_HEADERS } from '../http/openapi/docsPage.ts';
import { type ConsolePorts, consolePage } from './consolePage.ts';

interface SharePagePorts extends ConsolePorts {
  /** Counts the call by its address; the answer that refuses it, or null. */
  readonly count: (request: Request) => Promise<Answer | null>;
  readonly find: (token: string) => Promise<object | 'unknown' | 'ended'>;
}

const PATH = '/s/:token';
/** Links are secrets: caches, search engines and other sites must not learn them. */
const PRIVATE_HEADERS = {
  'Cache-Control': 'no-store',
  'Referrer-Policy': 'no-referrer',
  'X-Robots-Tag': 'noindex',
};

/** GET /s/{token}: the page of a share, without a login. 404 for an unknown token, 410 after the end of the share. */
export function sharePageRoute(app: Express, ports: SharePagePorts): void {
  app.all(PATH, named(PATH), onlyMethods('GET', 'HEAD'), async (request, response) => {
    const refusal = await ports.count(request);
    if (refusal !== null) {
      send(response, refusal, request.method);
      return;
    }
    const found = await ports.find(String(request.params['token']));
    if (typeof found === 'string') {
      const [status, page] = found === 'ended' ? [410, ENDED] : [404, UNKNOWN];
      sendPage(request, response, status, page, PAGE_HEADERS);
      return;
    }
    const { sharePage, policy } = await consolePage(ports);
    sendPage(request, response, 200, sharePage, policy);
  });
}

const ENDED = messagePage(
  'This link has ended.',
  'Vehicles are shown only while it lasts. Ask the person who sent it for a new one.',
);
const UNKNOWN = messagePage(
  'There is nothing at this link.',
  'A part of it may be missing. Ask the person who sent it to send it again.',
);

function messagePage(heading: string, text: string): string {
  return `<!doctype html>
<html lang="en" class="message">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="robots" content="noindex">
<title>${heading}</title>
<link rel="icon" type="image/png" href="${assetUrl('favicon-32x32.png')}">
<link rel="stylesheet" href="${assetUrl('home.css')}">
</head>
<body><main><h1>${heading}</h1><p>${text}</p></main></body>
</html>
`;
}

function sendPage(
  { method }: Request,
  response: Response,
  status: number,
  html: string,
  policy: Readonly<Record<string, string>>,
): void {
  response.statusCode = status;
  for (const [name, value] of Object.entries({ ...policy, ...PRIVATE_HEADERS }))
    response.setHeader(name, value);
  response.setHeader('Content-Type', 'text/html; charset=utf-8');
  response.setHeader('Content-Length', Buffer.byteLength(html));
  response.end(method === 'HEAD' ? undefined : html);
}
