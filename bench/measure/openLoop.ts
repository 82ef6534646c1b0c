import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { seededRandom } from '../../test/support/seededRandom.ts';
import { Latencies } from './latencies.ts';

/** GET requests to one server, or to several that are the same. */
export interface HttpCalls {
  /** Called in turn, with as many connections each. */
  readonly urls: readonly string[];
  readonly headers: Readonly<Record<string, string>>;
  /** Asked in turn. */
  readonly paths: readonly string[];
  /** API keys to use in turn, instead of the key in `headers`. */
  readonly keys?: readonly string[];
}

/** Calls at a rate that does not depend on the answers. */
export interface OpenLoad extends HttpCalls {
  readonly perSecond: number;
  /** More are opened, up to so many, when all others wait for answers. */
  readonly connectionsMax?: number;
  /** The server gets more than it can do: answers may be 503, and those that have not come at the end do not count. */
  readonly overloads?: true;
  /** What is answered in this time does not count. */
  readonly settleMs?: number;
}

export interface OpenResult {
  /** Answered with 200. */
  readonly completed: number;
  /** Answered with 503. */
  readonly refused: number;
  /** From the start, or the end of `settleMs`, to the last answer. */
  readonly seconds: number;
  /** Encoded Latencies, each from when a call was due until all of its answer was there. */
  readonly latencies: string;
}

/** At least. */
const CONNECTIONS = 64;
/** Connections without an answer so far: more than a server has room for until it accepts them are reset. */
const UNUSED_MAX = 128;
const TICK_MS = 1;
const ANSWER_LIMIT_MS = 10_000;
/**
 * Above this rate a timer is too coarse: the generator looks at the clock without a pause and takes a whole core. Not where
 * the server gets too much: its answers take longer than a timer.
 */
const TIMER_PER_SECOND_MAX = 5_000;

/**
 * Makes calls at random times (Poisson), like many independent clients. When all connections wait for answers, a call
 * is sent late, but its time runs from when it was due: a pause of the server affects every call of that time.
 * Returns what ends the load: it resolves when all calls that were due by then are answered, and rejects when one was not, or
 * by anything but 200. With `overloads` it resolves at once, and an answer of 503 is not an error.
 */
export async function startOpenLoop(load: OpenLoad): Promise<() => Promise<OpenResult>> {
  const latencies = new Latencies();
  const random = seededRandom(11);
  const gapMs = () => (-Math.log(1 - random()) * 1_000) / load.perSecond;
  const requests = load.paths.map((path, n) => requestOf(load, path, n));
  const idle: Connection[] = [];
  const most = load.connectionsMax ?? CONNECTIONS;
  const done = Promise.withResolvers<OpenResult>();
  done.promise.catch(() => undefined); // reported at the end
  let sent = 0;
  let answered = 0;
  let completed = 0;
  let refused = 0;
  /** Connections that have had an answer. */
  let used = 0;
  let isOver = false;
  let countsFromMs = 0;
  let endMs = Number.POSITIVE_INFINITY;
  const finish = (failed: Error | null) => {
    isOver = true;
    for (const { socket } of connections) socket.destroy();
    const seconds = (performance.now() - countsFromMs) / 1_000;
    if (failed === null) done.resolve({ completed, refused, seconds, latencies: latencies.encoded() });
    else done.reject(failed);
  };
  const onAnswer = (connection: Connection) => {
    if (connection.answers++ === 0) used++;
    const nowMs = performance.now();
    if (nowMs >= countsFromMs) {
      if (connection.isRefused) {
        refused++;
      } else {
        completed++;
        latencies.add(nowMs - connection.dueMs);
      }
    }
    answered++;
    idle.push(connection);
    sendDue();
  };
  const connections: Connection[] = [];
  const connectOnce = (): Connection => {
    const url = load.urls[connections.length % load.urls.length] as string;
    const connection = new Connection(url, load.overloads === true, onAnswer, finish);
    connections.push(connection);
    return connection;
  };
  const mayConnect = () => connections.length < most && connections.length - used < UNUSED_MAX;
  for (let n = 0; n < CONNECTIONS; n++) connectOnce();
  await Promise.all(connections.map(({ socket }) => once(socket, 'connect')));
  idle.push(...connections);
  const startMs = performance.now();
  countsFromMs = startMs + (load.settleMs ?? 0);
  let dueMs = startMs + gapMs();
  const sendDue = () => {
    const untilMs = Math.min(performance.now(), endMs);
    while (dueMs <= untilMs && !isOver) {
      const connection = idle.shift() ?? (mayConnect() ? connectOnce() : undefined);
      if (connection === undefined) return;
      connection.ask(requests[sent++ % requests.length] as string, dueMs);
      dueMs += gapMs();
    }
    if (dueMs > endMs && answered === sent && !isOver) finish(null);
  };
  const isFast = load.perSecond > TIMER_PER_SECOND_MAX && load.overloads !== true;
  const next = isFast ? setImmediate : (go: () => void) => setTimeout(go, TICK_MS);
  const go = () => {
    sendDue();
    if (!isOver) next(go);
  };
  go();
  return () => {
    if (load.overloads === true) finish(null);
    endMs = sent === 0 ? dueMs : performance.now(); // at least one call
    setTimeout(() => finish(new Error('a call has no answer')), ANSWER_LIMIT_MS).unref();
    return done.promise;
  };
}

function requestOf({ urls: [url = ''], headers, keys = [] }: OpenLoad, path: string, n: number): string {
  const key = keys[n % keys.length];
  const all = { Host: new URL(url).host, ...headers, ...(key !== undefined && { 'X-API-Key': key }) };
  const lines = Object.entries(all).map(([name, value]) => `${name}: ${value}\r\n`);
  return `GET ${path} HTTP/1.1\r\n${lines.join('')}\r\n`;
}

/** One call at a time. Reads no more of HTTP than whole answers with a Content-Length, which takes little of the core. */
class Connection {
  readonly socket: Socket;
  dueMs = 0;
  answers = 0;
  isRefused = false;
  readonly #mayRefuse: boolean;
  readonly #onAnswer: (connection: Connection) => void;
  readonly #fail: (error: Error) => void;
  #head: Buffer = EMPTY;
  #bodyLeft = 0;

  constructor(
    url: string,
    mayRefuse: boolean,
    onAnswer: (connection: Connection) => void,
    fail: (error: Error) => void,
  ) {
    const { hostname, port } = new URL(url);
    this.#mayRefuse = mayRefuse;
    this.#onAnswer = onAnswer;
    this.#fail = fail;
    this.socket = connect({ host: hostname, port: Number(port), noDelay: true });
    this.socket.on('data', (chunk: Buffer) => this.#take(chunk));
    this.socket.once('error', fail).once('end', () => fail(new Error('the server closed a connection')));
  }

  ask(request: string, dueMs: number): void {
    this.dueMs = dueMs;
    this.socket.write(request, 'latin1');
  }

  #take(chunk: Buffer): void {
    if (this.#bodyLeft > 0) {
      this.#bodyLeft -= chunk.length;
    } else {
      const all = this.#head.length === 0 ? chunk : Buffer.concat([this.#head, chunk]);
      const end = all.indexOf('\r\n\r\n');
      this.#head = end < 0 ? all : EMPTY;
      if (end < 0) return;
      const head = all.toString('latin1', 0, end);
      const [, bytes] = /\r\nContent-Length: (\d+)/i.exec(head) ?? [];
      this.isRefused = this.#mayRefuse && head.startsWith('HTTP/1.1 503 ');
      if (bytes === undefined || !(this.isRefused || head.startsWith('HTTP/1.1 200 '))) {
        this.#fail(new Error(`an answer began with ${head.slice(0, 15)}`));
        return;
      }
      this.#bodyLeft = Number(bytes) - (all.length - end - 4);
    }
    if (this.#bodyLeft === 0) this.#onAnswer(this);
  }
}

const EMPTY = Buffer.alloc(0);
