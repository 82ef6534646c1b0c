import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http';
import { type CidrSet, clientAddress } from '../access/ipAddress.ts';
import type { SenderAuthorizer } from '../access/senderAuthorizer.ts';
import { type Answer, errorAnswer, methodAnswer } from '../http/answer.ts';
import { type CallTraces, dispatcher } from '../http/dispatcher.ts';
import type { Exchange, Observe } from '../http/exchange.ts';
import { expressApp, onlyMethods, type Probes, probeRoutes } from '../http/expressApp.ts';
import { isSmallBody, readPieces, restRead } from '../http/requestBody.ts';
import { type ErrorPorts, unexpectedErrorAnswer } from '../http/unexpectedError.ts';
import { type FairSemaphore, Overloaded } from '../lib/fairSemaphore.ts';
import { parseJsonText } from '../lib/parseText.ts';
import type { Result } from '../lib/result.ts';
import { type Clock, DAY_MS, withDeadline } from '../lib/time.ts';
import type { Steps, WorkTurns } from '../lib/workTurns.ts';
import type { Span } from '../traces/span.ts';
import type { FixOutcome } from './fix.ts';
import { type Batch, BatchReader, hasMoreValues, MAX_POINTS } from './formats/batchReader.ts';
import { parseOsmand, parseOsmandJson, readOsmandParams, readTokenParameter } from './formats/parseOsmand.ts';
import { type ParsedPoint, REJECTIONS, type Rejection, rateExceeded } from './formats/parsePoint.ts';
import { parseTraccar } from './formats/parseTraccar.ts';
import { type Ingest, IngestOverload } from './ingest.ts';

interface PositionPorts extends ErrorPorts {
  readonly ingest: Pick<Ingest, 'store'>;
  readonly senders: SenderAuthorizer;
  readonly bodies: IngestBodies;
  readonly trustedProxies: CidrSet;
  readonly longestHistoryDays: number;
  readonly clock: Clock;
  readonly probes: Probes;
  readonly traces: CallTraces | null;
  readonly metrics: {
    readonly observeRequest: Observe;
    countRejected(points: number): void;
    exposition(): Promise<{ readonly contentType: string; readonly text: string }>;
  };
}

/**
 * The listener for positions, on a port of its own, with the probes and metrics of the pod. In pods without the role
 * (`ingest` is null) only those are served.
 */
export function ingestListener(
  ports: Omit<PositionPorts, 'ingest'> & { readonly ingest: PositionPorts['ingest'] | null },
): RequestListener {
  const { ingest, probes, metrics, traces } = ports;
  const fail = (error: unknown, request: IncomingMessage) =>
    overloadAnswer(error) ?? unexpectedErrorAnswer(error, request, ports, 'INVALID_BODY');
  const pages = expressApp(
    metrics.observeRequest,
    (app) => {
      app.all('/metrics', onlyMethods('GET', 'HEAD'), async (_request, response) => {
        const { contentType, text } = await metrics.exposition();
        response.set('Content-Type', contentType).end(text);
      });
      probeRoutes(app, probes, true);
    },
    fail,
  );
  if (ingest === null) return pages;
  const positionPorts = { ...ports, ingest };
  /** Memory is filled once. Until then `pages` answers. */
  let isLoaded = false;
  const find = ({ url }: IncomingMessage) => {
    isLoaded ||= probes.loaded();
    return isLoaded ? (ROUTES.get(pathOf(url as string)) ?? null) : null;
  };
  const answer = (route: PositionRoute, exchange: Exchange) => answerSender(positionPorts, route, exchange);
  const observe = metrics.observeRequest;
  const callerOf = (request: IncomingMessage) => networkOf(request, ports.trustedProxies);
  return dispatcher({ probes, observe, traces, callerOf, find, exchange: newExchange, answer, fail }, pages);
}

/** Without the query, and without a slash at its end. */
function pathOf(target: string): string {
  const mark = target.indexOf('?');
  const end = mark === -1 ? target.length : mark;
  return target.slice(0, target[end - 1] === '/' ? end - 1 : end);
}

function newExchange(request: IncomingMessage, response: ServerResponse, { path }: PositionRoute): Exchange {
  const startedAtMs = performance.now();
  return { request, response, version: 'positions', pattern: path, startedAtMs, span: null, unknown: null };
}

function overloadAnswer(error: unknown): Answer | null {
  const isCrowded = error instanceof Overloaded;
  if (!isCrowded && !(error instanceof IngestOverload)) return null;
  const reason = isCrowded ? 'too many bodies wait to be read' : error.message;
  return errorAnswer('SERVICE_UNAVAILABLE', `${reason}; send again shortly`);
}

interface PositionRoute {
  readonly path: string;
  readonly methods: readonly string[];
  /** Phones cannot send headers: the token may be a parameter, so the body, a form, is read before it is known who sends it. */
  readonly takesForms: boolean;
  readonly store: (ports: PositionPorts, sending: Sending) => Promise<Answer>;
}

/** What somebody sends. */
interface Sending {
  readonly request: IncomingMessage;
  /** That the calls of the sender are counted by. */
  readonly network: string;
  readonly span: Span | null;
  /** Of a route that takes forms; otherwise it is not read yet. */
  readonly form: Buffer | null;
  /** Points are taken between these instants, with some tolerance for the newer end. */
  readonly nowMs: number;
  readonly oldestMs: number;
}

const ROUTES: ReadonlyMap<string, PositionRoute> = new Map(
  [
    { path: '/positions', methods: ['POST'], takesForms: false, store: positions },
    { path: '/traccar', methods: ['POST'], takesForms: false, store: traccar },
    { path: '/osmand', methods: ['GET', 'POST'], takesForms: true, store: osmand },
  ].map((route) => [route.path, route]),
);

/** Lets those through who show a token, then asks for the method. */
async function answerSender(
  ports: PositionPorts,
  route: PositionRoute,
  { request, span }: Exchange,
): Promise<Answer> {
  span?.step('parse');
  const network = networkOf(request, ports.trustedProxies);
  const form = route.takesForms ? await ports.bodies.readForm(request, network) : null;
  const header = request.headers['x-ingest-token'] as string | undefined;
  const token =
    header ?? (form === null ? undefined : readTokenParameter(queryOf(request), formText(request, form)));
  const decision = await ports.senders.authorize(network, token);
  if (decision !== 'granted') return REFUSALS[decision];
  const method = request.method as string;
  if (!route.methods.includes(method)) return methodAnswer(method, route.methods);
  const nowMs = ports.clock();
  const oldestMs = nowMs - ports.longestHistoryDays * DAY_MS;
  return route.store(ports, { request, network, span, form, nowMs, oldestMs });
}

function networkOf(request: IncomingMessage, trustedProxies: CidrSet): string {
  const forwardedFor = request.headers['x-forwarded-for'] as string | undefined;
  return clientAddress(request.socket.remoteAddress, forwardedFor, trustedProxies).network;
}

const REFUSALS = {
  denied: errorAnswer('FORBIDDEN', 'the ingest token is missing or wrong'),
  limited: errorAnswer(
    'TOO_MANY_REQUESTS',
    'too many wrong ingest tokens from this address; try again later',
  ),
};

async function positions(ports: PositionPorts, sending: Sending): Promise<Answer> {
  const { request, network, span, nowMs, oldestMs } = sending;
  const format = NDJSON_TYPE.test(request.headers['content-type'] ?? '') ? 'ndjson' : 'json';
  const reader = new BatchReader(format, nowMs, oldestMs);
  await ports.bodies.readBatch(request, network, reader);
  const batch = reader.finish();
  if (!batch.ok) return batch.error === 'TOO_MANY' ? TOO_MANY_POINTS : NOT_JSON;
  return storedAnswer(ports, network, await storeBatch(ports, batch.value, span));
}

const NDJSON_TYPE = /^application\/(x-)?(nd-?json|jsonl)/i;

const TOO_MANY_POINTS = errorAnswer(
  'PAYLOAD_TOO_LARGE',
  `a request may carry at most ${MAX_POINTS} points; nothing was stored`,
);

/** A rejected position is answered with 200 too: Traccar would send it again and again. */
async function traccar(
  ports: PositionPorts,
  { request, network, span, nowMs, oldestMs }: Sending,
): Promise<Answer> {
  const body = parsePositionJson(await ports.bodies.readPosition(request, network));
  if ('status' in body) return body;
  const summary = await storePoint(ports, parseTraccar(body.value, nowMs, oldestMs), span);
  return storedAnswer(ports, network, summary);
}

async function osmand(ports: PositionPorts, sending: Sending): Promise<Answer> {
  const { request, network, span, nowMs, oldestMs } = sending;
  const form = sending.form as Buffer;
  let point: Result<ParsedPoint, Rejection>;
  if (isJson(request, form)) {
    const body = parsePositionJson(form);
    if ('status' in body) return body;
    point = parseOsmandJson(body.value, nowMs, oldestMs);
  } else {
    const params = readOsmandParams(queryOf(request), formText(request, form));
    if (params === 'given_twice') return errorAnswer('BAD_REQUEST', 'a parameter is given twice');
    if (params === 'too_many') return errorAnswer('BAD_REQUEST', 'too many parameters are given');
    point = parseOsmand(params, nowMs, oldestMs);
  }
  const summary = await storePoint(ports, point, span);
  const [rejected] = summary.rejected;
  return rejected === undefined
    ? storedAnswer(ports, network, summary)
    : errorAnswer('BAD_REQUEST', rejected.message);
}

const isJson = ({ headers }: IncomingMessage, body: Buffer): boolean =>
  body.length > 0 && /^application\/json\b/i.test(headers['content-type'] ?? '');

const queryOf = ({ url }: IncomingMessage): string => (url as string).split(/\?(.*)/s, 2)[1] ?? '';

const formText = (request: IncomingMessage, body: Buffer): string =>
  isJson(request, body) ? '' : body.toString('utf8');

/** A position that Traccar forwards has up to two hundred values. This many are built in a millisecond. */
const MAX_POSITION_VALUES = 2_000;

/** What a body that carries one position says, or the answer to one that says too much or nothing. */
function parsePositionJson(bytes: Buffer): { readonly value: unknown } | Answer {
  if (hasMoreValues(bytes, MAX_POSITION_VALUES)) return TOO_MANY_VALUES;
  const value = parseJsonText(bytes.toString('utf8'));
  return value === undefined ? NOT_JSON : { value };
}

const NOT_JSON = errorAnswer('INVALID_BODY', 'the body is not JSON; nothing was stored');

const TOO_MANY_VALUES = errorAnswer(
  'PAYLOAD_TOO_LARGE',
  'the body has more values than any position; nothing was stored',
);

const STORE_DEADLINE_MS = 15_000;

/**
 * Stores what could be read; answers after the commit, never before. When Postgres does not answer, the answer asks
 * the sender to try again; what is stored later after all is a duplicate then.
 */
async function storeBatch(
  { ingest, metrics }: PositionPorts,
  batch: Batch,
  span: Span | null,
): Promise<Summary> {
  span?.set({ 'fleet.points': batch.fixes.length });
  const storing = span?.step('store') ?? null;
  const stored = ingest.store(
    batch.fixes.map(({ fix }) => fix),
    storing,
  );
  const outcomes = await withDeadline(stored, STORE_DEADLINE_MS, 'storing points');
  metrics.countRejected(batch.rejected.length);
  return summarize(batch, outcomes);
}

function storePoint(
  ports: PositionPorts,
  point: Result<ParsedPoint, Rejection>,
  span: Span | null,
): Promise<Summary> {
  if (!point.ok)
    return storeBatch(ports, { fixes: [], rejected: [{ index: 0, ...point.error }], ignored: [] }, span);
  const { fix, ignored } = point.value;
  const named = ignored.map((field) => ({ index: 0, field }));
  return storeBatch(ports, { fixes: [{ index: 0, fix }], rejected: [], ignored: named }, span);
}

/** What became of the points of a batch, as it is answered. */
interface Summary {
  readonly accepted: number;
  readonly duplicates: number;
  readonly late: number;
  /** Both by index. */
  readonly rejected: Batch['rejected'];
  readonly ignored: Batch['ignored'];
}

/** `outcomes`: one for each of the batch's fixes. */
function summarize(batch: Batch, outcomes: readonly FixOutcome[]): Summary {
  const count = { accepted: 0, duplicates: 0, late: 0 };
  const rejected = [...batch.rejected];
  outcomes.forEach((outcome, n) => {
    const rejection = rejectionOf(outcome);
    if (rejection !== null) rejected.push({ index: batch.fixes[n]?.index ?? n, ...rejection });
    else if (outcome === 'duplicate') count.duplicates++;
    else {
      count.accepted++;
      if (outcome === 'late') count.late++;
    }
  });
  return { ...count, rejected: rejected.sort((a, b) => a.index - b.index), ignored: batch.ignored };
}

function rejectionOf(outcome: FixOutcome): Rejection | null {
  if (outcome === 'unknown_device') return REJECTIONS.UNKNOWN_DEVICE;
  if (outcome === 'too_complex') return REJECTIONS.TOO_COMPLEX;
  return typeof outcome === 'object' ? rateExceeded(outcome) : null;
}

/** A longer list becomes JSON in steps: a batch may have 10 000 points to reject, or nine fields of each to ignore. */
const STEP_ITEMS = 250;

async function storedAnswer({ bodies }: PositionPorts, network: string, summary: Summary): Promise<Answer> {
  const isLong = summary.rejected.length + summary.ignored.length > STEP_ITEMS;
  const body = isLong
    ? await bodies.inTurns(network, summaryJson(summary))
    : JSON.stringify({ data: summary });
  return { status: 200, body };
}

function* summaryJson({ rejected, ignored, ...counts }: Summary): Steps<string> {
  const parts = [`{"data":${JSON.stringify(counts).slice(0, -1)},"rejected":[`];
  yield* listJson(rejected, parts);
  parts.push('],"ignored":[');
  yield* listJson(ignored, parts);
  parts.push(']}}');
  return parts.join('');
}

function* listJson(items: readonly object[], parts: string[]): Steps<void> {
  for (let at = 0; at < items.length; at += STEP_ITEMS) {
    const json = JSON.stringify(items.slice(at, at + STEP_ITEMS));
    parts.push(at === 0 ? '' : ',', json.slice(1, -1));
    yield;
  }
}

const MAX_BATCH_BYTES = 16 * 1024 * 1024;
const MAX_POSITION_BYTES = 64 * 1024;
/** Up to here a body is read at once, whatever it holds, and waits for nobody. */
const SMALL_BYTES = 16 * 1024;

/**
 * How many bodies beyond SMALL_BYTES are read side by side. Nothing is kept of a body but its points, 8 MB at most for
 * the 10 000 of one; the bodies that wait stay with their senders.
 */
export const BODY_SLOTS = { running: 16, runningPerKey: 8, waiting: 512, waitingPerKey: 256 } as const;

/** Reads bodies of points, fair by network, in steps that hold up nobody. Rejects like readPieces, and with Overloaded. */
export class IngestBodies {
  readonly #turns: WorkTurns<string | number>;
  readonly #known: FairSemaphore<string>;
  readonly #forms: FairSemaphore<string>;

  /** Forms are read before it is known who sends them: they have slots of their own, and take none from a sender. */
  constructor(
    turns: WorkTurns<string | number>,
    slots: { readonly known: FairSemaphore<string>; readonly forms: FairSemaphore<string> },
  ) {
    this.#turns = turns;
    this.#known = slots.known;
    this.#forms = slots.forms;
  }

  async readBatch(request: IncomingMessage, network: string, reader: BatchReader): Promise<void> {
    if (isSmallBody(request, SMALL_BYTES)) {
      await readToEnd(request, SMALL_BYTES, (piece) => {
        for (const _ of reader.read(piece)); // at once
      });
    } else {
      const read = (piece: Buffer) =>
        reader.hasFailed ? undefined : this.inTurns(network, reader.read(piece));
      await this.#known.run(network, () => readToEnd(request, MAX_BATCH_BYTES, read));
    }
  }

  /** The bytes of a body that carries one position, of a sender who is known. */
  readPosition(request: IncomingMessage, network: string): Promise<Buffer> {
    return readWhole(request, network, this.#known);
  }

  /** The same of an unknown sender. */
  readForm(request: IncomingMessage, network: string): Promise<Buffer> {
    return readWhole(request, network, this.#forms);
  }

  /** What a longer computation for a sender returns. */
  inTurns<T>(network: string, steps: Steps<T>): Promise<T> {
    return this.#turns.run(`ingest ${network}`, steps);
  }
}

async function readWhole(
  request: IncomingMessage,
  network: string,
  slots: FairSemaphore<string>,
): Promise<Buffer> {
  const pieces: Buffer[] = [];
  const read = () => readToEnd(request, MAX_POSITION_BYTES, (piece) => void pieces.push(piece));
  await (isSmallBody(request, SMALL_BYTES) ? read() : slots.run(network, read));
  return Buffer.concat(pieces);
}

/** As readPieces; a client that is still sending would not see the answer, so the rest of a rejected body is read first. */
async function readToEnd(...[request, maxBytes, take]: Parameters<typeof readPieces>): Promise<void> {
  try {
    await readPieces(request, maxBytes, take);
  } catch (error) {
    await restRead(request);
    throw error;
  }
}
