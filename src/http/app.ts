import type { IncomingMessage } from 'node:http';
import express, { type Express, type NextFunction, type Request, type Response, Router } from 'express';
import helmet from 'helmet';
import type { AccessDecision } from '../access/authorizer.ts';
import type { ClientAddress } from '../access/clientAddress.ts';
import type { KeyState } from '../access/keyState.ts';
import type { SessionAuthorizer } from '../access/sessionAuthorizer.ts';
import { NOBODY } from '../access/sessionCaller.ts';
import { type JsonError, parseJson } from '../lib/parseJson.ts';
import type { Result } from '../lib/result.ts';
import type { WorkTurns } from '../lib/workTurns.ts';
import { type Answer, errorAnswer } from './answer.ts';
import { answerRoute, type MountedRoute, mounted, resolveCall } from './answerRoute.ts';
import {
  type AuthorizePorts,
  authorizeRequest,
  callerHeaders,
  clientOf,
  deniedAnswer,
  rejectApiVersion,
  takesSessions,
} from './authorize.ts';
import type { BodyBudget, BodyOwner } from './body/bodyBudget.ts';
import { isEncoded } from './body/readBody.ts';
import { measure } from './measure.ts';
import { methodAnswer } from './methodAnswer.ts';
import { UNKNOWN_PARAMETERS_HEADER } from './parameters/unknownParameters.ts';
import type { PollingPorts } from './pollingListener.ts';
import { probeRoutes } from './probes.ts';
import type { ApiVersion, RequestBody, Route } from './route.ts';
import { send, whenGone } from './send.ts';
import { unexpectedErrorAnswer } from './unexpectedError.ts';

export type AppPorts = PollingPorts &
  ApplicationPorts &
  BodyPorts & {
    /** Adds the pages for people: no key is asked for on them. */
    readonly addPages: (app: Express) => void;
  };

const VERSIONS: readonly ApiVersion[] = ['v1', 'v2', 'v3', 'webhooks'];

/** The public listener: one chain that a request passes from top to bottom. */
export function createApp(ports: AppPorts): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', false).enable('case sensitive routing');
  app.use(measure(ports.observe));
  app.use(helmet());
  app.use('/api/v3', betaMark);
  app.use('/api/v1', deprecationMark);
  probeRoutes(app, ports.probes);
  ports.addPages(app);
  for (const version of VERSIONS) {
    app.use(`/api/${version}`, authorization(ports, version), apiVersionHeader(version));
    app.use(`/api/${version}`, apiRouter(ports, version, ports.routes));
  }
  app.use((request, response) => send(response, errorAnswer('NOT_FOUND'), request.method));
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    send(response, unexpectedErrorAnswer(error, request, ports), request.method);
  });
  return app;
}

type Middleware = (request: Request, response: Response, next: NextFunction) => void;

/** Every v3 answer says that v3 is a beta, errors included. */
function betaMark(_request: Request, response: Response, next: NextFunction): void {
  response.setHeader('X-API-Status', 'beta');
  next();
}

/** Every v1 answer says until when v1 is there, in the words of the API document, errors included. */
function deprecationMark(_request: Request, response: Response, next: NextFunction): void {
  response.setHeader('Deprecation', 'true');
  response.setHeader('Sunset', '2027-03-08');
  next();
}

function authorization(ports: AppPorts, version: ApiVersion): Middleware {
  return async (request, response, next) => {
    const nowMs = ports.clock();
    const decision = await (takesSessions(version)
      ? authorizeSessionCall(ports, version, request, nowMs)
      : authorizeRequest(ports, request, nowMs));
    if (decision.kind !== 'granted') {
      send(response, deniedAnswer(decision, version), request.method);
      return;
    }
    const client = version === 'v1' ? { client: clientOf(ports, request) } : {};
    response.locals['authorized'] = { caller: decision.caller, nowMs, ...client };
    next();
  };
}

function apiVersionHeader(version: ApiVersion): Middleware {
  return (request, response, next) => {
    const error = rejectApiVersion(request, version);
    if (error === null) next();
    else send(response, error, request.method);
  };
}

interface ApplicationPorts extends AuthorizePorts {
  readonly sessions: SessionAuthorizer;
}

/**
 * The caller where sessions count as well as keys: on v1 and on the management of webhooks. With both headers X-API-Key
 * decides. A login needs neither, so its headers are ignored.
 *
 * @param request as a middleware mounted at the version's prefix sees it
 */
function authorizeSessionCall(
  ports: ApplicationPorts,
  version: ApiVersion,
  request: Request,
  nowMs: number,
): AccessDecision | Promise<AccessDecision> {
  const client = clientOf(ports, request);
  if (version === 'v1' && isLogin(request)) return ports.sessions.authorizeAnybody(client, nowMs);
  if ((callerHeaders(request.rawHeaders).apiKey ?? '') !== '') return authorizeRequest(ports, request, nowMs);
  // All of them: `headers` keeps the first and passes over the others without a word.
  return ports.sessions.authorize(request.headersDistinct['authorization'] ?? [], client, nowMs);
}

function isLogin({ method, path }: Request): boolean {
  return method === 'POST' && (path === '/session' || path === '/session/');
}

/** Where the decision middleware leaves the authorized caller for the routes behind it. */
interface CallerLocals {
  readonly authorized: { readonly caller: KeyState; readonly nowMs: number; readonly client?: ClientAddress };
}

/**
 * The routes of one version behind its prefix. Each path is mounted once and decides by method itself: GET answers,
 * HEAD like GET without a body, OPTIONS says what there is, anything else is 405.
 */
function apiRouter(ports: BodyPorts, version: ApiVersion, routes: readonly Route[]): Router {
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

export interface BodyPorts {
  readonly bodies: BodyBudget;
  readonly turns: WorkTurns<BodyOwner>;
}

/** Larger ones are parsed one in a turn of the event loop, in turn by their owners: JSON.parse cannot be interrupted. */
const INLINE_BYTES = 16 * 1024;

/**
 * The answer that `answer` makes of the body (null when there is none), or an error when the route does not take such a
 * body. The body's bytes are released when the answer has settled. Rejects as Bodies.read does.
 */
export async function withBody(
  { bodies, turns }: BodyPorts,
  request: IncomingMessage,
  owner: BodyOwner,
  { maxBodyBytes, takesPieces, takesPlainOnly }: Route,
  answer: (body: RequestBody | null) => Answer | Promise<Answer>,
): Promise<Answer> {
  if (maxBodyBytes === undefined) return answer(null);
  if (takesPlainOnly === true && isEncoded(request)) return errorAnswer('BAD_REQUEST', PLAIN_ONLY_REFUSAL);
  const { pieces, release } = await bodies.read(request, owner, maxBodyBytes);
  try {
    const isJson = JSON_TYPE.test(request.headers['content-type'] ?? '');
    const json = isJson && takesPieces !== true ? await readJson(turns, owner, pieces) : null;
    return await answer({ pieces, isJson, json });
  } finally {
    release();
  }
}

const PLAIN_ONLY_REFUSAL = 'the body of this request must not be compressed';

function readJson(
  turns: BodyPorts['turns'],
  owner: BodyOwner,
  pieces: readonly Buffer[],
): Result<unknown, JsonError> | Promise<Result<unknown, JsonError>> {
  const [only = Buffer.alloc(0)] = pieces;
  if (pieces.length <= 1 && only.length <= INLINE_BYTES) return parseJson(only);
  return turns.once(owner, () => parseJson(Buffer.concat(pieces)));
}

/** application/json and every +json (RFC 6839 section 3.1), such as application/geo+json; with or without parameters. */
const JSON_TYPE = /^(?:application\/json|[^\s;/]+\/[^\s;/]+\+json)\s*(?:;|$)/i;
