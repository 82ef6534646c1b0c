import { type NextFunction, type Request, type Response, Router } from 'express';
import type { ClientAddress } from '../access/clientAddress.ts';
import type { KeyState } from '../access/keyState.ts';
import { NOBODY } from '../access/sessionCaller.ts';
import type { Answer } from './answer.ts';
import { answerRoute, type MountedRoute, mounted, resolveCall } from './answerRoute.ts';
import type { BodyOwner } from './bodyBudget.ts';
import { methodAnswer } from './methodAnswer.ts';
import type { ApiVersion, Route } from './route.ts';
import { send, whenGone } from './send.ts';
import { type BodyPorts, withBody } from './takeBody.ts';
import { UNKNOWN_PARAMETERS_HEADER } from './unknownParameters.ts';

/** Where the decision middleware leaves the authorized caller for the routes behind it. */
export interface CallerLocals {
  readonly authorized: { readonly caller: KeyState; readonly nowMs: number; readonly client?: ClientAddress };
}

/**
 * The routes of one version behind its prefix. Each path is mounted once and decides by method itself: GET answers,
 * HEAD like GET without a body, OPTIONS says what there is, anything else is 405.
 */
export function apiRouter(ports: BodyPorts, version: ApiVersion, routes: readonly Route[]): Router {
  const router = Router({ caseSensitive: true });
  router.use(keepUndecodable);
  const byPath = Map.groupBy(
    routes.filter((route) => route.versions.includes(version)).map((route) => mounted(version, route)),
    ({ route }) => route.path,
  );
  // `/areas/import` before `/areas/:id`, which would take it for an id.
  const paths = [...byPath].sort(([a], [b]) => Number(a.includes(':')) - Number(b.includes(':')));
  for (const [path, atPath] of paths) {
    router.all(mountPoints(path), async (request, response) => {
      await send(response, await answerAt(ports, atPath, request, response), request.method);
    });
  }
  return router;
}

async function answerAt(
  ports: BodyPorts,
  atPath: readonly MountedRoute[],
  request: Request,
  response: Response,
): Promise<Answer> {
  const method = request.method === 'HEAD' ? 'GET' : request.method;
  const found = atPath.find(({ route }) => route.method === method);
  if (found === undefined) return otherMethod(request.method, atPath);
  const { version, route } = found;
  response.locals['route'] = `/api/${version}${route.path}`;
  const { authorized } = response.locals as CallerLocals;
  const resolved = resolveCall(found, authorized.caller, request.originalUrl);
  // Set here it is on whatever follows: a file, a stream, what the route fails with.
  if (resolved.unknown !== null) response.setHeader(UNKNOWN_PARAMETERS_HEADER, resolved.unknown);
  if ('error' in resolved) return resolved.error;
  const params = paramsOf(request, `/api/${version}`, route.path);
  const header = (name: string) => request.headers[name]?.toString();
  const hasLeft = () => response.destroyed;
  const whenLeft = (listener: () => void) => whenGone(response, listener);
  return withBody(ports, request, ownerOf(authorized), route, (body) =>
    answerRoute(route, {
      version,
      params,
      query: resolved.query,
      body,
      header,
      hasLeft,
      whenLeft,
      ...authorized,
    }),
  );
}

/** Whoever logs in is nobody yet. */
function ownerOf({ caller, client }: CallerLocals['authorized']): BodyOwner {
  return caller === NOBODY && client !== undefined ? client.network : caller.accountId;
}

/**
 * A segment that does not decode is a malformed parameter, which is answered after the method and the permission. Express
 * would reject it before either, so it is given another that no parameter takes.
 */
function keepUndecodable(request: Request, _response: Response, next: NextFunction): void {
  if (request.url.includes('%')) {
    const [path = '', query] = request.url.split(/(?=\?)(.*)/s, 2);
    request.url = path.split('/').map(decodable).join('/') + (query ?? '');
  }
  next();
}

function decodable(segment: string): string {
  try {
    decodeURIComponent(segment);
    return segment;
  } catch {
    return '%00'; // decodeURIComponent throws nothing but URIError
  }
}

/**
 * The path as Express mounts it. It also matches where a parameter is empty (`/devices//location`, or a wildcard
 * without its last slash), since an empty parameter is a malformed one, not another path.
 */
function mountPoints(path: string): (string | RegExp)[] {
  if (path === '/') return [/^\/?$/]; // as text it would match two slashes, too
  const star = path.indexOf('*');
  const emptied = star === -1 ? path.replace(/:\w+(?=\/)/, '') : path.slice(0, star - 1);
  return emptied === path ? [path] : [path, emptied];
}

/**
 * The parameters of the path, decoded. What a wildcard matches is decoded as a whole, so a slash in it may be plain or
 * encoded. One plain slash at the very end is allowed, as on every path.
 */
function paramsOf(request: Request, prefix: string, path: string): Readonly<Record<string, string>> {
  const star = path.indexOf('*');
  if (star === -1) return request.params as Record<string, string>;
  const [rawPath = ''] = request.originalUrl.split('?', 1);
  const rest = rawPath.slice(prefix.length + star).replace(/\/$/, '');
  return { [path.slice(star + 1)]: decodeURIComponent(rest) };
}

/** OPTIONS and methods that the path does not have; HEAD comes with every GET. */
function otherMethod(method: string, atPath: readonly MountedRoute[]): Answer {
  const allowed = atPath.flatMap(({ route }) => (route.method === 'GET' ? ['GET', 'HEAD'] : [route.method]));
  return methodAnswer(method, allowed);
}
