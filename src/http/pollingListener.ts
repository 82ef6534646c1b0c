import { IncomingMessage, type RequestListener, ServerResponse, STATUS_CODES } from 'node:http';
import { Socket } from 'node:net';
import helmet from 'helmet';
import type { AccessDecision } from '../access/authorizer.ts';
import type { Clock } from '../lib/clock.ts';
import { invariant } from '../lib/invariant.ts';
import type { Answer } from './answer.ts';
import { answerRoute, resolveCall } from './answerRoute.ts';
import { type AuthorizePorts, authorizeRequest, deniedAnswer, rejectApiVersion } from './authorize.ts';
import { type StreamedBody, sendStreamed } from './body/streamedBody.ts';
import type { Observe } from './measure.ts';
import { UNKNOWN_PARAMETERS_HEADER } from './parameters/unknownParameters.ts';
import { type PollingEntry, type PollingMatch, PollingTable } from './pollingTable.ts';
import type { Probes } from './probes.ts';
import type { Route } from './route.ts';
import { whenGone } from './send.ts';
import { type ErrorLog, type ErrorPorts, unexpectedErrorAnswer } from './unexpectedError.ts';

export interface PollingPorts extends AuthorizePorts {
  readonly routes: readonly Route[];
  readonly clock: Clock;
  readonly probes: Probes;
  readonly log: ErrorLog;
  readonly onDamaged: ErrorPorts['onDamaged'];
  readonly observe: Observe;
}

/**
 * Answers the polled routes without the chain of `rest` (the app), and passes every other request to it. Authorization,
 * route functions and headers are the same, so that an answer does not show which way it came. The chain costs more
 * than authorization, index and JSON together.
 */
export function pollingListener(ports: PollingPorts, rest: RequestListener): RequestListener {
  const table = new PollingTable(ports.routes);
  const writer = new PollingWriter(ports.observe, (error, request) =>
    unexpectedErrorAnswer(error, request, ports),
  );
  return (request, response) => {
    const match =
      request.method === 'GET' && ports.probes.loaded() ? table.find(request.url as string) : null;
    if (match === null) {
      rest(request, response);
      return;
    }
    const startedAtMs = performance.now();
    const answer = answerMatch(ports, match, request, response);
    if (answer instanceof Promise) {
      void answer.then((answer) => writer.put(response, match.entry, answer, startedAtMs));
    } else {
      writer.put(response, match.entry, answer, startedAtMs);
    }
  };
}

/** Never throws, never rejects: what fails is answered as the app answers it. */
function answerMatch(
  ports: PollingPorts,
  match: PollingMatch,
  request: IncomingMessage,
  response: ServerResponse,
): Answer | Promise<Answer> {
  const fail = (error: unknown) => unexpectedErrorAnswer(error, request, ports);
  try {
    const nowMs = ports.clock();
    const decision = authorizeRequest(ports, request, nowMs);
    const answer =
      decision instanceof Promise
        ? decision.then((decision) => answerAuthorized(decision, match, response, nowMs, fail))
        : answerAuthorized(decision, match, response, nowMs, fail);
    return answer instanceof Promise ? answer.catch(fail) : answer;
  } catch (error) {
    return fail(error);
  }
}

function answerAuthorized(
  decision: AccessDecision,
  { entry, params }: PollingMatch,
  response: ServerResponse,
  nowMs: number,
  fail: (error: unknown) => Answer,
): Answer | Promise<Answer> {
  const { version, route } = entry;
  const request = response.req;
  if (decision.kind !== 'granted') return deniedAnswer(decision, version);
  const error = rejectApiVersion(request, version);
  if (error !== null) return error;
  const { caller } = decision;
  const resolved = resolveCall(entry, caller, request.url as string);
  const { unknown } = resolved;
  if ('error' in resolved) return unknown === null ? resolved.error : withUnknown(resolved.error, unknown);
  const header = (name: string) => request.headers[name]?.toString();
  const plain = { version, caller, params, query: resolved.query, nowMs, body: null, header };
  const call =
    route.endsItself === undefined
      ? plain
      : { ...plain, whenLeft: (listener: () => void) => whenGone(response, listener) };
  if (unknown === null) return answerRoute(route, call);
  const answered = async () => answerRoute(route, call);
  return answered()
    .catch(fail)
    .then((answer) => withUnknown(answer, unknown));
}

/** Also where the route has failed: whoever misspells a parameter is told in any case. */
function withUnknown(answer: Answer, unknown: string): Answer {
  return { ...answer, headers: { ...answer.headers, [UNKNOWN_PARAMETERS_HEADER]: unknown } };
}

interface Waiting {
  readonly response: ServerResponse;
  readonly entry: PollingEntry;
  readonly answer: Answer;
  readonly startedAtMs: number;
}

/**
 * Writes answers with the same headers that the app sets. All answers of a turn of the event loop are written together
 * at its end. Written one by one, each would wake a reader that has just gone idle, on this machine or in the network
 * card, which costs more than the rest of the answer.
 */
export class PollingWriter {
  readonly #observe: Observe;
  readonly #fail: (error: unknown, request: IncomingMessage) => Answer;
  readonly #heads: Readonly<Record<PollingEntry['version'], CommonHeaders>>;
  #waiting: Waiting[] = [];

  /** `fail` gives the answer to a request whose own cannot be sent. */
  constructor(observe: Observe, fail: (error: unknown, request: IncomingMessage) => Answer) {
    this.#observe = observe;
    this.#fail = fail;
    const security = securityHeaders();
    this.#heads = {
      v2: new CommonHeaders(security),
      v3: new CommonHeaders([...security, 'X-API-Status', 'beta']),
    };
  }

  put(response: ServerResponse, entry: PollingEntry, answer: Answer, startedAtMs: number): void {
    const waiting = { response, entry, answer, startedAtMs };
    const { handover } = answer;
    if (handover !== undefined) {
      whenGone(response, handover.done);
      handover.inTurn(() => this.#write(waiting));
    } else if (this.#waiting.push(waiting) === 1) {
      setImmediate(() => this.#flush());
    }
  }

  #flush(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const one of waiting) this.#write(one);
  }

  #write(waiting: Waiting): void {
    const { response, entry, answer } = waiting;
    const { status, body, headers } = answer;
    if (body !== null && typeof body !== 'string' && !Buffer.isBuffer(body)) {
      invariant(!('attach' in body), 'a stream is not polled');
      void this.#writeLong(waiting, body);
      return;
    }
    const head = this.#heads[entry.version];
    const own: string[] = [];
    for (const name in headers) own.push(name, headers[name] as string);
    if (body === null) {
      response.writeHead(status, [...head.standing, ...own]).end();
    } else {
      const bytes = Buffer.byteLength(body);
      own.push('Content-Type', 'application/json; charset=utf-8', 'Content-Length', String(bytes));
      head.write(response, status, own);
      if (typeof body !== 'string') response.end(body);
      // Text of one byte per character needs no transcoding.
      else response.end(body, bytes === body.length ? 'latin1' : 'utf8');
    }
    this.#observed(waiting);
  }

  /** Never rejects. */
  async #writeLong(waiting: Waiting, body: StreamedBody): Promise<void> {
    const { response, entry, answer } = waiting;
    const own = ['Content-Type', 'application/json; charset=utf-8'];
    for (const name in answer.headers) own.push(name, answer.headers[name] as string);
    if (body.bytes !== null) own.push('Content-Length', String(body.bytes));
    try {
      await sendStreamed(response, body, () =>
        this.#heads[entry.version].write(response, answer.status, own),
      );
      if (response.writableFinished) this.#observed(waiting);
      else response.once('finish', () => this.#observed(waiting));
    } catch (error) {
      const failed = this.#fail(error, response.req);
      const unknown = answer.headers?.[UNKNOWN_PARAMETERS_HEADER];
      const marked =
        unknown === undefined ? failed : { ...failed, headers: { [UNKNOWN_PARAMETERS_HEADER]: unknown } };
      if (!response.headersSent) this.#write({ ...waiting, answer: marked });
    }
  }

  #observed({ entry, answer, startedAtMs }: Waiting): void {
    this.#observe(entry.pattern, 'GET', answer.status, (performance.now() - startedAtMs) / 1000);
  }
}

/** Names and values that helmet gives to every answer, taken from helmet itself. */
function securityHeaders(): string[] {
  const given: string[] = [];
  const request = new IncomingMessage(new Socket());
  const response = new ServerResponse(request);
  response.setHeader = (name, value) => {
    given.push(name, String(value));
    return response;
  };
  helmet()(request, response, () => undefined);
  return given;
}

/**
 * The headers of every answer, also as text with a status line before them: Node would check each of their characters
 * for each answer. writeHead takes no text, so this calls the internal step in which it ends, which Node does not
 * document. It makes a nearest call a tenth cheaper.
 */
class CommonHeaders {
  /** Names and values, one after the other. */
  readonly standing: readonly string[];
  readonly #lines: string;
  readonly #heads = new Map<number, string>();

  constructor(standing: readonly string[]) {
    this.standing = standing;
    let lines = '';
    for (let n = 0; n < standing.length; n += 2) lines += `${standing[n]}: ${standing[n + 1]}\r\n`;
    this.#lines = lines;
  }

  /** For an answer with a body; `own` are further names and values. Node adds Date, Connection and Keep-Alive. */
  write(response: ServerResponse, status: number, own: readonly string[]): void {
    let head = this.#heads.get(status);
    if (head === undefined) {
      head = `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${this.#lines}`;
      this.#heads.set(status, head);
    }
    response.statusCode = status;
    (response as unknown as WriteHeadsLastStep)._storeHeader(head, own);
  }
}

interface WriteHeadsLastStep {
  _storeHeader(head: string, headers: readonly string[]): void;
}
