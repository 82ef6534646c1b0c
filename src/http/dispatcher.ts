import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import type { Express } from 'express';
import { NOBODY, thenAtOnce } from '../access/authorizer.ts';
import type { KeyState } from '../access/credentials.ts';
import { type Clock, DeadlineExceeded, OutOfTime, withDeadline } from '../lib/time.ts';
import { WorkTurns } from '../lib/workTurns.ts';
import type { Span } from '../traces/span.ts';
import type { CallerOf, Traces } from '../traces/traces.ts';
import { type Answer, errorAnswer, methodAnswer } from './answer.ts';
import type { AuthorizePorts } from './authorize.ts';
import {
  authorizeRequest,
  clientOf,
  deniedAnswer,
  headerOf,
  likelyCaller,
  refuseScope,
  rejectApiVersion,
  tracedCaller,
} from './authorize.ts';
import { AnswerWriter, type Exchange, type Observe, whenGone } from './exchange.ts';
import { expressApp, type Probes, probeRoutes, STARTING, securityHeaders } from './expressApp.ts';
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
import type { Call, Route } from './route.ts';
import { type FoundPath, type MountedRoute, paramsOf, RouteTable } from './routeTable.ts';
import type { Shedder } from './shedder.ts';
import type { ShedClass } from './shedding.ts';
import { type ErrorPorts, unexpectedErrorAnswer } from './unexpectedError.ts';

export interface ApiPorts extends AuthorizePorts, BodyPorts, ErrorPorts {
  readonly routes: readonly Route[];
  readonly clock: Clock;
  readonly probes: Probes;
  readonly observe: Observe;
  readonly traces: CallTraces | null;
  readonly shedder: Pick<Shedder, 'isActive' | 'isRefusing' | 'refuse' | 'noteWait'>;
  /** Adds the pages for people: no key is asked for on them. */
  readonly addPages: (app: Express) => void;
}

/** The limit for an answer while Postgres neither answers nor fails. */
const ANSWER_DEADLINE_MS = 15_000;

/** Null in its place: no call is traced. */
export type CallTraces = Pick<Traces, 'ofCall'>;

/** What a listener answers itself, in front of Express. */
interface Dispatched<Found> {
  readonly probes: Pick<Probes, 'loaded'>;
  readonly observe: Observe;
  readonly traces: CallTraces | null;
  readonly callerOf: CallerOf;
  /** Null: Express answers. */
  find(request: IncomingMessage): Found | null;
  exchange(request: IncomingMessage, response: ServerResponse, found: Found): Exchange;
  answer(found: Found, exchange: Exchange): Answer | Promise<Answer>;
  /** The answer to what failed on the way. */
  fail(error: unknown, request: IncomingMessage): Answer;
}

/** Answers what it finds without the chain of Express, and leaves all the rest to `pages`. */
export function dispatcher<Found>(calls: Dispatched<Found>, pages: Express): RequestListener {
  const writer = new AnswerWriter(calls, securityHeaders());
  /** Memory is filled once. */
  let isLoaded = false;
  return (request, response) => {
    const found = calls.find(request);
    if (found === null) {
      pages(request, response);
      return;
    }
    const exchange = calls.exchange(request, response, found);
    if (calls.traces !== null) exchange.span = spanOf(calls.traces, exchange, calls.callerOf);
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

/** The span of an exchange ends with its answer, or when the caller has hung up. */
function spanOf(traces: CallTraces, exchange: Exchange, callerOf: CallerOf): Span | null {
  const span = traces.ofCall(exchange, callerOf);
  if (span !== null) whenGone(exchange.response, () => span.end());
  return span;
}

/**
 * The public listener. Every call of the API passes one path: overload, caller, version header, path, method, permission,
 * query, body, route. All the rest is answered by Express: probes, and pages for people.
 */
export function apiListener(ports: ApiPorts): RequestListener {
  const { probes, observe, traces } = ports;
  const callerOf = tracedCaller.bind(null, ports);
  const table = new RouteTable(ports.routes);
  const fail = (error: unknown, request: IncomingMessage) => unexpectedErrorAnswer(error, request, ports);
  const find = ({ url }: IncomingMessage) => {
    const found = table.find(url as string);
    return found === null || (found.path === null && PAGE.test(url as string)) ? null : found;
  };
  const turns = new CallTurns((shedAs, waitedMs) => ports.shedder.noteWait(shedAs, waitedMs));
  const answer = (found: FoundPath, exchange: Exchange) => answerCall(ports, turns, found, exchange);
  return dispatcher<FoundPath>(
    { probes, observe, traces, callerOf, find, exchange: newExchange, answer, fail },
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
    span: null,
    unknown: null,
  };
}

function answerCall(
  ports: ApiPorts,
  turns: CallTurns,
  found: FoundPath,
  exchange: Exchange,
): Answer | Promise<Answer> {
  if (ports.shedder.isActive) {
    // Before anything is done for the call: a refusal has to cost less than an answer.
    const mounted = found.path?.byMethod.get(exchange.request.method as string);
    if (mounted !== undefined && ports.shedder.isRefusing(mounted.route.shedAs)) {
      const refusal = ports.shedder.refuse(mounted.route.shedAs, likelyCaller(ports, exchange.request));
      if (refusal !== null) return refusal;
    }
  }
  const nowMs = ports.clock();
  const admission = exchange.span?.step('admission') ?? null;
  return thenAtOnce(
    authorizeRequest(ports, exchange.request, found.version, nowMs, admission),
    (decision) => {
      if (decision.kind !== 'granted') return deniedAnswer(decision, found.version);
      const { caller } = decision;
      if (!turns.isOver()) return answerCaller(ports, found, exchange, caller, nowMs);
      const owner = caller === NOBODY ? clientOf(ports, exchange.request).network : caller.accountId;
      const shedAs = found.path?.byMethod.get(exchange.request.method as string)?.route.shedAs ?? 'poll';
      return turns.next(shedAs, owner, exchange, () => answerCaller(ports, found, exchange, caller, nowMs));
    },
  );
}

/** How long calls are answered in one turn of the event loop before the others wait. */
const TURN_MS = 4;
/**
 * How long each turn answers calls that have waited: polls for so long, and of each class at least one call. Reading and
 * writing a poll takes some four times as long as answering it.
 */
const WAITING_MS: Readonly<Record<ShedClass, number>> = { bulk: 0, poll: 1 };
/**
 * Calls that may wait, of one account and of all. An account also has no more than there is room left, so however many
 * accounts send too much, another one finds room (dynamic thresholds; Choudhury and Hahne, IEEE/ACM Transactions on
 * Networking 6(2), 1998). More are refused.
 */
export const WAITING_CALLS_MAX = { ofOne: 4_096, ofAll: 16_384 };

/**
 * Bounds the time that one turn of the event loop spends on calls: it may read a thousand, and each may take a millisecond.
 * Calls that are not answered in that time wait for a later turn, so points, probes and answers of Postgres are read between
 * them. Accounts take turns, so a caller with a thousand connections delays its own calls only. Polls go before lists.
 */
export class CallTurns {
  readonly #turns: Readonly<Record<ShedClass, WorkTurns<BodyOwner>>> = {
    bulk: new WorkTurns(WAITING_MS.bulk),
    poll: new WorkTurns(WAITING_MS.poll),
  };
  readonly #onWaited: Shedder['noteWait'];
  readonly #end = (): void => {
    this.#endsMs = 0;
  };
  /** How many calls wait, of each that has some. */
  readonly #waitingOf = new Map<BodyOwner, number>();
  #waiting = 0;
  /** 0: no call has come since the last turn. */
  #endsMs = 0;

  /** `onWaited` is told how long a call that had to wait has waited. */
  constructor(onWaited: Shedder['noteWait']) {
    this.#onWaited = onWaited;
  }

  /** Whether a call has to wait for its turn. */
  isOver(): boolean {
    if (this.#waiting > 0) return true;
    const nowMs = performance.now();
    if (this.#endsMs === 0) {
      this.#endsMs = nowMs + TURN_MS;
      setImmediate(this.#end);
    }
    return nowMs > this.#endsMs;
  }

  /** The answer once it is the turn of the call, or 503 where too many wait. `owner`: who takes turns with others. */
  async next(
    shedAs: ShedClass,
    owner: BodyOwner,
    { startedAtMs, response }: Exchange,
    answer: () => Answer | Promise<Answer>,
  ): Promise<Answer> {
    const { ofOne, ofAll } = WAITING_CALLS_MAX;
    if ((this.#waitingOf.get(owner) ?? 0) >= Math.min(ofOne, ofAll - this.#waiting)) return TOO_MANY;
    this.#count(owner, 1);
    return this.#turns[shedAs].once(owner, () => {
      this.#count(owner, -1);
      const waitedMs = performance.now() - startedAtMs;
      this.#onWaited(shedAs, waitedMs);
      // Nobody reads it, or the time in which it had to be answered is over: those behind it have some left.
      return response.destroyed || waitedMs > ANSWER_DEADLINE_MS ? TOO_MANY : answer();
    });
  }

  #count(owner: BodyOwner, change: 1 | -1): void {
    this.#waiting += change;
    const waiting = (this.#waitingOf.get(owner) ?? 0) + change;
    if (waiting === 0) this.#waitingOf.delete(owner);
    else this.#waitingOf.set(owner, waiting);
  }
}

const TOO_MANY: Answer = {
  ...errorAnswer(
    'SERVICE_UNAVAILABLE',
    'too many calls wait on this server; try again after Retry-After seconds',
  ),
  headers: { 'Retry-After': '1' },
};

function answerCaller(
  ports: ApiPorts,
  found: FoundPath,
  exchange: Exchange,
  caller: KeyState,
  nowMs: number,
): Answer | Promise<Answer> {
  const { request, response, span } = exchange;
  const { version, path } = found;
  span?.set({ 'fleet.account.id': caller.accountId });
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
    header: (name) => headerOf(request.rawHeaders, name),
    hasLeft: () => response.destroyed,
    whenLeft: (listener) => whenGone(response, listener),
  };
  if (version === 'v1') call.client = clientOf(ports, request);
  if (route.maxBodyBytes === undefined) return answerRoute(route, call, span);
  span?.step('read body');
  return withBody(ports, request, ownerOf(call), route, (body) => {
    call.body = body;
    return answerRoute(route, call, span);
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
function answerRoute(route: Route, call: Call, span: Span | null): Answer | Promise<Answer> {
  span?.step(route.isFromMemory === true ? 'search' : 'handle');
  const answer = route.handle(call);
  if (!(answer instanceof Promise) || route.endsItself === true) return answer;
  const Exceeded = route.isFromMemory === true ? OutOfTime : DeadlineExceeded;
  return withDeadline(answer, route.deadlineMs ?? ANSWER_DEADLINE_MS, 'the answer', Exceeded);
}
