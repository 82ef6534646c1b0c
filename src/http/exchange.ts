import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { Pace, type Steps } from '../lib/workTurns.ts';
import type { Span } from '../traces/span.ts';
import { type Answer, errorAnswer, type StreamedBody, send, TRAILER_HEADER } from './answer.ts';
import { sendLive, sendStreamed } from './longBody.ts';
import { UNKNOWN_PARAMETERS_HEADER } from './parameters.ts';
import type { ApiVersion } from './route.ts';

/**
 * Not an import: that evaluates all exports of node:http, and for one of them, WebSocket, Node loads its HTTP client undici,
 * which takes a tenth of a start.
 */
const http = process.getBuiltinModule('node:http');

/** Called for every finished answer: route pattern, method, status, seconds from the request's headers on. */
export type Observe = (route: string, method: string, status: number, seconds: number) => void;

/** A request to the API, or to the listener for positions, as far as its answer depends on it. */
export interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  readonly version: ApiVersion | 'positions';
  /** Under which the answer is observed. */
  readonly pattern: string;
  readonly startedAtMs: number;
  /** Null: the exchange is not traced. */
  span: Span | null;
  /** The value of X-Unknown-Parameters, which every answer has from the moment that they are known. */
  unknown: string | null;
}

/** Calls the listener for requests whose target and host can be read in one way only, and answers the others. */
export function checkedRequests(listener: RequestListener): RequestListener {
  return (request, response) => {
    request.url = originForm(request.url ?? '/');
    const hosts = countHosts(request.rawHeaders);
    if (hosts === 1 || (hosts === 0 && request.httpVersion === '1.0')) listener(request, response);
    else answerBadHost(request, response, hosts === 0 ? 'is missing' : 'is given twice');
  };
}

/**
 * The target of a request as path and query. A proxy may send the absolute form, "http://host/path" (RFC 9112 section
 * 3.2.2), which Express partly answers in HTML. Clients do not send fragments, so a plain # is a character that was not
 * encoded, as in an external id: without the rest the path would name another area.
 */
function originForm(target: string): string {
  const whole = target.includes('#') ? target.replaceAll('#', '%23') : target;
  if (whole.startsWith('/')) return whole;
  const rest = whole.replace(/^[a-z][a-z0-9+.-]*:\/\/[^/?]*/i, '');
  return rest.startsWith('/') ? rest : `/${rest}`;
}

/** How often a request names its host: of several, `headers` shows the first and passes over the others. */
function countHosts(rawHeaders: readonly string[]): number {
  let hosts = 0;
  for (let n = 0; n < rawHeaders.length; n += 2) {
    const name = rawHeaders[n] as string;
    if (name.length === 4 && name.toLowerCase() === 'host') hosts++;
  }
  return hosts;
}

/**
 * A request of HTTP/1.1 has to name its host, and no request may name two, since two readers could then choose
 * differently (RFC 9112 section 3.2).
 */
function answerBadHost(request: IncomingMessage, response: ServerResponse, reason: string): void {
  response.shouldKeepAlive = false;
  if (V3.test(request.url ?? '')) response.setHeader('X-API-Status', 'beta');
  send(response, errorAnswer('BAD_REQUEST', `the header Host ${reason}`), request.method);
}

export const V3 = /^\/api\/v3(?:[/?]|$)/;

export interface WriterPorts {
  readonly observe: Observe;
  /** Gives the answer to a request whose own cannot be sent. */
  readonly fail: (error: unknown, request: IncomingMessage) => Answer;
}

/** Every v1 answer says until when v1 is there, in the words of the API document; every v3 answer that v3 is a beta. */
const VERSION_HEADERS: Readonly<Record<Exchange['version'], readonly string[]>> = {
  v1: ['Deprecation', 'true', 'Sunset', '2027-03-08'],
  v2: [],
  v3: ['X-API-Status', 'beta'],
  webhooks: [],
  share: [],
  positions: [],
};

/**
 * Writes the answers of the API with their headers. HEAD gets the headers of GET without the body. All answers of a turn
 * of the event loop are written together at its end. Written one by one, each would wake a reader that has just gone
 * idle, on this machine or in the network card, which costs more than the rest of the answer.
 */
export class AnswerWriter {
  readonly #ports: WriterPorts;
  readonly #standing: Readonly<Record<Exchange['version'], StandingHeaders>>;
  #waiting: { readonly exchange: Exchange; readonly answer: Answer }[] = [];

  /** `security`: names and values, one after the other. */
  constructor(ports: WriterPorts, security: readonly string[]) {
    this.#ports = ports;
    const standing = (version: Exchange['version']) =>
      new StandingHeaders([...security, ...VERSION_HEADERS[version]]);
    this.#standing = {
      v1: standing('v1'),
      v2: standing('v2'),
      v3: standing('v3'),
      webhooks: standing('webhooks'),
      share: standing('share'),
      positions: standing('positions'),
    };
  }

  put(exchange: Exchange, answer: Answer): void {
    const { handover } = answer;
    exchange.span?.step('answer');
    if (handover !== undefined) {
      whenGone(exchange.response, handover.done);
      handover.inTurn(() => this.#write(exchange, answer));
    } else if (this.#waiting.push({ exchange, answer }) === 1) {
      setImmediate(() => this.#flush());
    }
  }

  #flush(): void {
    const waiting = this.#waiting;
    this.#waiting = [];
    for (const { exchange, answer } of waiting) this.#write(exchange, answer);
  }

  #write(exchange: Exchange, answer: Answer): void {
    try {
      this.#begin(exchange, answer);
    } catch (error) {
      this.#fail(exchange, error);
    }
  }

  #begin(exchange: Exchange, answer: Answer): void {
    const { request, response } = exchange;
    const { body } = answer;
    if (request.method === 'HEAD' || body === null) {
      this.#writeHead(exchange, answer, bytesOf(body));
      response.end();
      this.#observe(exchange, answer);
    } else if (typeof body === 'string') {
      const bytes = Buffer.byteLength(body);
      this.#writeHead(exchange, answer, bytes);
      // Text of one byte per character needs no transcoding.
      response.end(body, bytes === body.length ? 'latin1' : 'utf8');
      this.#observe(exchange, answer);
    } else if (Buffer.isBuffer(body)) {
      this.#writeHead(exchange, answer, body.length);
      response.end(body);
      this.#observe(exchange, answer);
    } else if ('attach' in body) {
      response.once('finish', () => this.#observe(exchange, answer));
      this.#writeHead(exchange, answer, null);
      sendLive(response, body);
    } else {
      void this.#writeStreamed(exchange, answer, body);
    }
  }

  /** Never rejects. */
  async #writeStreamed(exchange: Exchange, answer: Answer, body: StreamedBody): Promise<void> {
    const { response } = exchange;
    try {
      await sendStreamed(response, body, () => this.#writeHead(exchange, answer, body.bytes));
      if (response.writableFinished) this.#observe(exchange, answer);
      else response.once('finish', () => this.#observe(exchange, answer));
    } catch (error) {
      this.#fail(exchange, error);
    }
  }

  #fail(exchange: Exchange, error: unknown): void {
    const failed = this.#ports.fail(error, exchange.request);
    if (!exchange.response.headersSent) this.#begin(exchange, failed);
  }

  #writeHead({ request, response, version, unknown }: Exchange, answer: Answer, bytes: number | null): void {
    const { status, headers, body } = answer;
    const own: string[] = [];
    if (unknown !== null) own.push(UNKNOWN_PARAMETERS_HEADER, unknown);
    for (const name in headers)
      if (name !== TRAILER_HEADER || hasChunks(request, response)) own.push(name, headers[name] as string);
    if (body !== null && headers?.['Content-Type'] === undefined) {
      own.push('Content-Type', 'application/json; charset=utf-8');
    }
    if (bytes !== null) own.push('Content-Length', String(bytes));
    this.#standing[version].writeFast(response, status, own);
  }

  #observe({ request, pattern, startedAtMs, span }: Exchange, { status }: Answer): void {
    this.#ports.observe(pattern, request.method ?? '', status, (performance.now() - startedAtMs) / 1000);
    if (span !== null) endCall(span, status);
  }
}

/** Only a body in chunks can be followed by headers: not that of HTTP/1.0, as some proxies speak it, and not that of HEAD. */
function hasChunks({ method }: IncomingMessage, { useChunkedEncodingByDefault }: ServerResponse): boolean {
  return method !== 'HEAD' && useChunkedEncodingByDefault;
}

function endCall(span: Span, status: number): void {
  span.set({ 'http.response.status_code': status });
  if (status >= 500) span.fail(String(status));
  span.end();
}

/**
 * The headers of every answer of a version. Node adds Date, Connection and Keep-Alive.
 *
 * `writeHead` checks each character of each header for each answer. `_storeHeader`, the step in which it ends, takes the
 * status line and checked headers as one text. Node does not document this step, so a test notices when it is gone or
 * writes other bytes; then `writeHead` is called. It makes a nearest call 6 % cheaper.
 */
export class StandingHeaders {
  readonly #pairs: readonly string[];
  readonly #lines: string;
  /** By status. */
  readonly #heads = new Map<number, string>();

  /** Names and values, one after the other. */
  constructor(pairs: readonly string[]) {
    this.#pairs = pairs;
    let lines = '';
    for (let n = 0; n < pairs.length; n += 2) lines += `${pairs[n]}: ${pairs[n + 1]}\r\n`;
    this.#lines = lines;
  }

  /** `own`: further names and values. */
  write(response: ServerResponse, status: number, own: readonly string[]): void {
    response.writeHead(status, [...this.#pairs, ...own]);
  }

  /** The same. */
  writeFast(response: ServerResponse & StoresHeaders, status: number, own: readonly string[]): void {
    if (response._storeHeader === undefined) {
      this.write(response, status, own);
      return;
    }
    let head = this.#heads.get(status);
    if (head === undefined) {
      head = `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}\r\n${this.#lines}`;
      this.#heads.set(status, head);
    }
    response.statusCode = status;
    // As `writeHead` does: these answers end with their headers (RFC 9110, sections 15.3.5 and 15.4.5).
    if (status === 204 || status === 304) response._hasBody = false;
    response._storeHeader(head, own);
  }
}

interface StoresHeaders {
  _hasBody?: boolean;
  _storeHeader?(head: string, headers: readonly string[]): void;
}

/** The length of a body; null where there is none, or it is not known yet. */
function bytesOf(body: Answer['body']): number | null {
  if (body === null) return null;
  if (typeof body === 'string' || Buffer.isBuffer(body)) return Buffer.byteLength(body);
  return 'attach' in body ? null : body.bytes;
}

/**
 * Calls `listener` once all of an answer was taken by its connection, or the connection is gone: also of an answer that
 * waits behind another of its connection.
 */
export function whenGone(response: ServerResponse, listener: () => void): void {
  if (response.destroyed || response.req.socket.destroyed) listener();
  else response.once('close', listener);
}

/** The time between two checks of all connections, which take turns with other work. */
const SILENCE_LOOK_MS = 5_000;

/**
 * Ends connections on which nothing was sent or taken for as long as Node says by `setTimeout`. Node itself makes two timers
 * for each request and sets them again with each read and write, which takes 4 % of a poll. Here the time is only noted, and
 * a check every five seconds compares how many bytes each connection has sent and taken.
 *
 * `_onTimeout` is what Node's timer calls. It spares a connection that has taken a part of what is written to it. Node does
 * not document it, so a test notices when it is gone; then such a connection is ended, too.
 */
export function endSilent(server: Server, lookEveryMs = SILENCE_LOOK_MS): void {
  const connections = new Map<Socket & HasTimer, { limitMs: number; bytes: number; sinceMs: number }>();
  server.prependListener('connection', (socket: Socket) => {
    const silence = { limitMs: 0, bytes: 0, sinceMs: performance.now() };
    connections.set(socket, silence);
    socket.once('close', () => connections.delete(socket));
    socket.setTimeout = (limitMs) => {
      silence.limitMs = limitMs;
      return socket;
    };
  });
  function* check(): Steps<void> {
    const pace = new Pace();
    const nowMs = performance.now();
    for (const [socket, last] of connections) {
      const bytes = socket.bytesRead + socket.bytesWritten;
      const isOver = bytes === last.bytes && last.limitMs > 0 && nowMs - last.sinceMs >= last.limitMs;
      if (bytes !== last.bytes || isOver) Object.assign(last, { bytes, sinceMs: nowMs });
      if (isOver && socket._onTimeout === undefined) socket.emit('timeout');
      else if (isOver) socket._onTimeout?.();
      if (pace.isDue()) yield* pace.pause();
    }
  }
  let isChecking = false;
  const goOn = (checking: Steps<void>): void => {
    isChecking = checking.next().done !== true;
    if (isChecking) setImmediate(goOn, checking);
  };
  const timer = setInterval(() => isChecking || goOn(check()), lookEveryMs).unref();
  server.once('close', () => clearInterval(timer));
}

interface HasTimer {
  _onTimeout?(): void;
}

/** Seconds that answers of one kind took: counts[i] of at most the i-th bound and more than the one before. */
interface Series {
  readonly counts: Float64Array;
  sumSeconds: number;
}

interface Sample {
  readonly metricName: string;
  readonly labels: Readonly<Record<string, string | number>>;
  readonly value: number;
}

/**
 * A histogram of answered requests by route, method and status, in the form that a registry of prom-client takes.
 * prom-client's own builds, validates and hashes an object of labels for each observation; here it is three look-ups
 * and two additions. Routes are patterns of the code, never paths, so the series are few.
 */
export class RequestDurations {
  readonly name = 'fleet_http_request_duration_seconds';
  readonly help = 'Duration of answered requests by route and status.';
  readonly type = 'histogram';
  readonly #boundsSeconds: readonly number[];
  readonly #byRoute = new Map<string, Map<string, Map<number, Series>>>();

  /** `boundsSeconds` ascending; what took longer than the last counts as well. */
  constructor(boundsSeconds: readonly number[]) {
    this.#boundsSeconds = boundsSeconds;
  }

  observe(route: string, method: string, status: number, seconds: number): void {
    const series = this.#byRoute.get(route)?.get(method)?.get(status) ?? this.#open(route, method, status);
    let bucket = 0;
    while (bucket < this.#boundsSeconds.length && seconds > (this.#boundsSeconds[bucket] as number)) bucket++;
    series.counts[bucket] = (series.counts[bucket] as number) + 1;
    series.sumSeconds += seconds;
  }

  /** Asked by the registry. */
  get(): Promise<{ name: string; help: string; type: string; values: Sample[]; aggregator: string }> {
    const values: Sample[] = [];
    for (const [route, byMethod] of this.#byRoute) {
      for (const [method, byStatus] of byMethod) {
        for (const [status, series] of byStatus)
          values.push(...this.#samples({ route, method, status }, series));
      }
    }
    return Promise.resolve({ name: this.name, help: this.help, type: this.type, values, aggregator: 'sum' });
  }

  /** Buckets are cumulative, as the exposition format has them. */
  #samples(labels: Sample['labels'], { counts, sumSeconds }: Series): Sample[] {
    let total = 0;
    const buckets = Array.from(counts, (count, at): Sample => {
      total += count;
      const le = this.#boundsSeconds[at] ?? '+Inf';
      return { metricName: `${this.name}_bucket`, labels: { le, ...labels }, value: total };
    });
    return [
      ...buckets,
      { metricName: `${this.name}_sum`, labels, value: sumSeconds },
      { metricName: `${this.name}_count`, labels, value: total },
    ];
  }

  #open(route: string, method: string, status: number): Series {
    const byMethod = this.#byRoute.get(route) ?? new Map<string, Map<number, Series>>();
    const byStatus = byMethod.get(method) ?? new Map<number, Series>();
    const series = { counts: new Float64Array(this.#boundsSeconds.length + 1), sumSeconds: 0 };
    this.#byRoute.set(route, byMethod.set(method, byStatus.set(status, series)));
    return series;
  }
}
