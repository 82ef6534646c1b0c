import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Express } from 'express';
import { NOBODY, thenAtOnce } from '../access/authorizer.ts';
import type { KeyState } from '../access/credentials.ts';
import { invariant } from '../lib/errors.ts';
import { type Clock, DeadlineExceeded, OutOfTime, withDeadline } from '../lib/time.ts';
import { type Answer, errorAnswer, methodAnswer } from './answer.ts';
import type { AuthorizePorts } from './authorize.ts';
import { authorizeRequest, clientOf, deniedAnswer, refuseScope, rejectApiVersion } from './authorize.ts';
import { AnswerWriter, type Exchange, type Observe, whenGone } from './exchange.ts';
import { expressApp, type Probes, probeRoutes, STARTING } from './expressApp.ts';
import {
  parameterError,
  type Query,
  readChoice,
  readQuery,
  STRICT,
  unknownParametersMessage,
  unknownParametersText,
} from './parameters.ts';
import { type BodyOwner, type BodyPorts, withBody } from './requestBody.ts';
import type { ApiVersion, Call, Route } from './route.ts';
import { type ErrorPorts, unexpectedErrorAnswer } from './unexpectedError.ts';

export interface ApiPorts extends AuthorizePorts, BodyPorts, ErrorPorts {
  readonly routes: readonly Route[];
  readonly clock: Clock;
  readonly probes: Probes;
  readonly observe: Observe;
  /** Adds the pages for people: no key is asked for on them. */
  readonly addPages: (app: Express) => void;
}

/** The limit for an answer while Postgres neither answers nor fails. */
const ANSWER_DEADLINE_MS = 15_000;

/** What a listener answers itself, in front of Express. */
interface Dispatched<Found> {
  readonly probes: Pick<Probes, 'loaded'>;
  readonly observe: Observe;
  /** Null: Express answers. */
  find(request: IncomingMessage): Found | null;
  exchange(request: IncomingMessage, response: ServerResponse, found: Found): Exchange;
  answer(found: Found, exchange: Exchange): Answer | Promise<Answer>;
  /** The answer to what failed on the way. */
  fail(error: unknown, request: IncomingMessage): Answer;
}

/** Answers what it finds without the chain of Express, and leaves all the rest to `pages`. */
export function dispatcher<Found>(calls: Dispatched<Found>, pages: Express): RequestListener {
  const writer = new AnswerWriter(calls);
  /** Memory is filled once. */
  let isLoaded = false;
  return (request, response) => {
    const found = calls.find(request);
    if (found === null) {
      pages(request, response);
      return;
    }
    const exchange = calls.exchange(request, response, found);
    let answer: Answer | Promise<Answer>;
    try {
      isLoaded ||= calls.probes.loaded();
      answer = isLoaded ? calls.answer(found, exchange) : STARTING;
    } catch (error) {
      answer = calls.fail(error, request);
    }
    if (answer instanceof Promise) {
      void answer
        .catch((error: unknown) => calls.fail(error, request))
        .then((answer) => writer.put(exchange, answer));
    } else {
      writer.put(exchange, answer);
    }
  };
}

/**
 * The public listener. Every call of the API passes one path: caller, version header, path, method, permission, query,
 * body, route. All the rest is answered by Express: probes, and pages for people.
 */
export function apiListener(ports: ApiPorts): RequestListener {
  const { probes, observe } = ports;
  const table = new RouteTable(ports.routes);
  const fail = (error: unknown, request: IncomingMessage) => unexpectedErrorAnswer(error, request, ports);
  const find = ({ url }: IncomingMessage) => {
    const found = table.find(url as string);
    return found === null || (found.path === null && PAGE.test(url as string)) ? null : found;
  };
  const answer = (found: FoundPath, exchange: Exchange) => answerCall(ports, found, exchange);
  return dispatcher<FoundPath>(
    { probes, observe, find, exchange: newExchange, answer, fail },
    expressApp(observe, (app) => addPages(app, ports), fail),
  );
}

/** The description of the API and its page lie below the prefix of v3. */
const PAGE = /^\/api\/v3\/(?:openapi\.json\/?|docs(?:\/[^?]*)?)(?:\?|$)/;

function addPages(app: Express, ports: ApiPorts): void {
  app.use('/api/v3', (_request, response, next) => {
    response.setHeader('X-API-Status', 'beta');
    next();
  });
  probeRoutes(app, ports.probes);
  ports.addPages(app);
}

function newExchange(
  request: IncomingMessage,
  response: ServerResponse,
  { version, path }: FoundPath,
): Exchange {
  return {
    request,
    response,
    version,
    pattern: path?.byMethod.has(request.method as string) === true ? path.pattern : 'other',
    startedAtMs: performance.now(),
    unknown: null,
  };
}

function answerCall(ports: ApiPorts, found: FoundPath, exchange: Exchange): Answer | Promise<Answer> {
  const nowMs = ports.clock();
  return thenAtOnce(authorizeRequest(ports, exchange.request, found.version, nowMs), (decision) =>
    decision.kind === 'granted'
      ? answerCaller(ports, found, exchange, decision.caller, nowMs)
      : deniedAnswer(decision, found.version),
  );
}

function answerCaller(
  ports: ApiPorts,
  found: FoundPath,
  exchange: Exchange,
  caller: KeyState,
  nowMs: number,
): Answer | Promise<Answer> {
  const { request, response } = exchange;
  const { version, path } = found;
  const versionError = rejectApiVersion(request, version);
  if (versionError !== null) return versionError;
  if (path === null) return errorAnswer('NOT_FOUND');
  const mounted = path.byMethod.get(request.method as string);
  if (mounted === undefined) return methodAnswer(request.method as string, path.allowed);
  const { route } = mounted;
  const refusal = refuseScope(version, route, caller);
  if (refusal !== null) return refusal;
  const query = queryOf(mounted, exchange);
  if ('error' in query) return query.error;
  const call: { -readonly [Part in keyof Call]: Call[Part] } = {
    version,
    caller,
    params: paramsOf(found),
    query: query.query,
    nowMs,
    body: null,
    header: (name) => request.headers[name]?.toString(),
    hasLeft: () => response.destroyed,
    whenLeft: (listener) => whenGone(response, listener),
  };
  if (version === 'v1') call.client = clientOf(ports, request);
  if (route.maxBodyBytes === undefined) return answerRoute(route, call);
  return withBody(ports, request, ownerOf(call), route, (body) => {
    call.body = body;
    return answerRoute(route, call);
  });
}

/** The query of a call, or what is wrong with it. Notes unknown parameters for the header of the answer. */
function queryOf(
  { known }: MountedRoute,
  exchange: Exchange,
): { readonly query: Query } | { readonly error: Answer } {
  const read = readQuery(exchange.request.url as string, known);
  if (read.unknown !== null) exchange.unknown = unknownParametersText(read.unknown);
  if ('problem' in read) return { error: errorAnswer('BAD_REQUEST', read.problem) };
  const error = known === null ? null : strictError(read.query, exchange.unknown);
  return error === null ? read : { error };
}

function strictError(query: Query, unknown: string | null): Answer | null {
  const strict = readChoice(query, STRICT);
  if (strict === 'invalid') return parameterError(STRICT);
  if (strict !== 'true' || unknown === null) return null;
  return errorAnswer('BAD_REQUEST', unknownParametersMessage(unknown));
}

/** A caller who logs in has no account yet. */
function ownerOf({ caller, client }: Call): BodyOwner {
  return caller === NOBODY && client !== undefined ? client.network : caller.accountId;
}

/** The route's answer; a promise of one settles within the route's deadline. */
function answerRoute(route: Route, call: Call): Answer | Promise<Answer> {
  const answer = route.handle(call);
  if (!(answer instanceof Promise) || route.endsItself === true) return answer;
  const Exceeded = route.isFromMemory === true ? OutOfTime : DeadlineExceeded;
  return withDeadline(answer, route.deadlineMs ?? ANSWER_DEADLINE_MS, 'the answer', Exceeded);
}

/** A route under the prefix of one version. */
interface MountedRoute {
  readonly version: ApiVersion;
  readonly route: Route;
  /** The query parameters that it reads; null where unknown ones are ignored. */
  readonly known: ReadonlySet<string> | null;
}

/** All routes of one path of a version. */
interface RoutePath {
  /** The path with its prefix, such as `/api/v3/devices/:imei`. */
  readonly pattern: string;
  /** A route that answers GET answers HEAD too. */
  readonly byMethod: ReadonlyMap<string, MountedRoute>;
  /** The methods in the order of Allow. */
  readonly allowed: readonly string[];
  /** What is variable: a segment, or all that is left. `head` and `tail` are what comes before and after it. */
  readonly parameter: {
    readonly name: string;
    readonly isRest: boolean;
    readonly head: string;
    readonly tail: string;
  } | null;
  /** Of a path with several parameters, which has no `parameter`: takes its text apart. */
  readonly several: RegExp | null;
}

/** The version that a request target names, and the path below it. */
export interface FoundPath {
  readonly version: ApiVersion;
  /** Null when the version has no such path. */
  readonly path: RoutePath | null;
  /** What follows the prefix and its slash. One slash at its end is not part of it. */
  readonly text: string;
}

/** The paths of a version. */
interface VersionPaths {
  readonly version: ApiVersion;
  readonly literal: ReadonlyMap<string, RoutePath>;
  /** Those with a parameter by what comes before and after it, the longest head first. */
  readonly variable: readonly (readonly [head: string, byTail: ReadonlyMap<string, RoutePath>])[];
  /** Those with several parameters. */
  readonly several: readonly RoutePath[];
}

const PREFIX = '/api/';
const SLASH = 47;
const NO_PARAMS: Readonly<Record<string, string>> = Object.freeze({});
/** In place of what follows a parameter that takes all that is left. */
const REST = '*';

/**
 * Finds the routes of a request target. Paths are compared as sent: their case matters, and an escaped letter or slash
 * is none. A literal segment comes before a parameter. An empty segment is an empty parameter where more follows it,
 * because `/devices//location` lacks an IMEI and is not another path.
 */
export class RouteTable {
  readonly #versions: ReadonlyMap<string, VersionPaths>;

  constructor(routes: readonly Route[]) {
    const mounted = routes.flatMap((route) =>
      route.versions.map((version) => ({ version, route, known: knownParameters(version, route) })),
    );
    this.#versions = new Map(
      Array.from(
        Map.groupBy(mounted, ({ version }) => version),
        ([version, own]) => [version, pathsOf(version, own)],
      ),
    );
  }

  /** Null for a target outside of the API. */
  find(target: string): FoundPath | null {
    if (!target.startsWith(PREFIX)) return null;
    const mark = target.indexOf('?', PREFIX.length);
    const pathEnd = mark === -1 ? target.length : mark;
    const slash = target.indexOf('/', PREFIX.length);
    const prefixEnd = slash === -1 || slash > pathEnd ? pathEnd : slash;
    const paths = this.#versions.get(target.slice(PREFIX.length, prefixEnd));
    if (paths === undefined) return null;
    const start = prefixEnd + 1;
    // The prefix and two slashes are not the path of the prefix, so the second slash is kept.
    const end = pathEnd > start + 1 && target.charCodeAt(pathEnd - 1) === SLASH ? pathEnd - 1 : pathEnd;
    const text = start < end ? target.slice(start, end) : '';
    return { version: paths.version, path: paths.literal.get(text) ?? variablePath(paths, text), text };
  }
}

function variablePath({ variable, several }: VersionPaths, text: string): RoutePath | null {
  for (const [head, byTail] of variable) {
    if (!text.startsWith(head)) continue;
    const slash = text.indexOf('/', head.length);
    const tail = slash === -1 ? '' : text.slice(slash);
    const path = tail === '' && text.length === head.length ? undefined : byTail.get(tail);
    const found = path ?? byTail.get(REST);
    if (found !== undefined) return found;
  }
  return several.find((path) => path.several?.test(text)) ?? null;
}

/**
 * The parameters of a path, decoded. A segment that does not decode is a text that no parameter takes. All that is left
 * of a path is decoded as a whole, so a slash in it may be plain or encoded. Throws URIError when that does not decode.
 */
export function paramsOf({ path, text }: FoundPath): Readonly<Record<string, string>> {
  if (path?.parameter === null || path?.parameter === undefined) return severalParams(path, text);
  const { name, head, tail, isRest } = path.parameter;
  if (isRest) return { [name]: decodeURIComponent(text.slice(head.length)) };
  const segment = text.slice(head.length, text.length - tail.length);
  return segment === '' ? NO_PARAMS : { [name]: segment.includes('%') ? decodedSegment(segment) : segment };
}

function severalParams(path: RoutePath | null, text: string): Readonly<Record<string, string>> {
  const groups = path?.several?.exec(text)?.groups;
  if (groups === undefined) return NO_PARAMS;
  return Object.fromEntries(Object.entries(groups).map(([name, part]) => [name, decodedSegment(part)]));
}

function decodedSegment(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return '\0'; // decodeURIComponent throws nothing but URIError
  }
}

function pathsOf(version: ApiVersion, routes: readonly MountedRoute[]): VersionPaths {
  const literal = new Map<string, RoutePath>();
  const variable = new Map<string, Map<string, RoutePath>>();
  const several: RoutePath[] = [];
  for (const [text, atPath] of Map.groupBy(routes, ({ route }) => route.path)) {
    const path = pathOf(version, text, atPath);
    if (path.several !== null) {
      several.push(path);
      continue;
    }
    if (path.parameter === null) {
      literal.set(text.slice(1), path);
      continue;
    }
    const { head, tail, isRest } = path.parameter;
    const byTail = variable.get(head) ?? new Map<string, RoutePath>();
    variable.set(head, byTail.set(isRest ? REST : tail, path));
    if (isRest) literal.set(head.slice(0, -1), path); // nothing is left
  }
  return { version, literal, variable: [...variable].sort(([a], [b]) => b.length - a.length), several };
}

function pathOf(version: ApiVersion, path: string, routes: readonly MountedRoute[]): RoutePath {
  const [found, ...others] = path.matchAll(/([:*])(\w+)/g);
  const isSingle = found !== undefined && others.length === 0;
  const [all = '', kind, name = ''] = found ?? [];
  const byMethod = new Map(routes.map((mounted) => [mounted.route.method as string, mounted]));
  const read = byMethod.get('GET');
  if (read !== undefined) byMethod.set('HEAD', read);
  return {
    pattern: `${PREFIX}${version}${path}`,
    byMethod,
    allowed: routes.flatMap(({ route }) => (route.method === 'GET' ? ['GET', 'HEAD'] : [route.method])),
    parameter: isSingle
      ? {
          name,
          isRest: kind === REST,
          head: path.slice(1, found.index),
          tail: path.slice(found.index + all.length),
        }
      : null,
    several: others.length === 0 ? null : severalOf(path.slice(1)),
  };
}

/** "tiles/:x/:y.mvt" as an expression that names its parameters; each is a part of a segment. */
function severalOf(path: string): RegExp {
  invariant(!path.includes(REST), `${path} has several parameters, so each is a part of a segment`);
  return new RegExp(`^${path.replaceAll('.', '\\.').replace(/:(\w+)/g, '(?<$1>[^/]*)')}$`);
}

/**
 * The names that a route reads from its query; null where unknown ones are ignored, which is everywhere but on v3 and on
 * the routes of v3 that v1 has for the application.
 */
export function knownParameters(version: ApiVersion, route: Route): ReadonlySet<string> | null {
  if ((version !== 'v3' && version !== 'v1') || !('describe' in route)) return null;
  const named = (route.describe.parameters ?? []).filter((parameter) => parameter.in === 'query');
  return new Set([STRICT.name, ...named.map(({ name }) => name)]);
}
