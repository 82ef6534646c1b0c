import type { Express, Request, RequestHandler } from 'express';
import type { CidrSet } from '../access/ipAddress.ts';
import type { SenderAuthorizer } from '../access/senderAuthorizer.ts';
import { type Answer, errorAnswer } from '../http/answer.ts';
import type { Observe } from '../http/answerWriter.ts';
import { clientOf } from '../http/authorize.ts';
import { expressApp, named, onlyMethods, type Probes, probeRoutes, send } from '../http/expressApp.ts';
import { type ErrorLog, type ErrorPorts, unexpectedErrorAnswer } from '../http/unexpectedError.ts';
import type { Clock } from '../lib/clock.ts';
import { Overloaded } from '../lib/fairSemaphore.ts';
import type { Result } from '../lib/result.ts';
import { DAY_MS, withDeadline } from '../lib/time.ts';
import type { Steps } from '../lib/workTurns.ts';
import type { FixOutcome } from './fix.ts';
import { type Batch, MAX_POINTS } from './formats/batchReader.ts';
import { parseOsmand, parseOsmandJson, readOsmandParams, readTokenParameter } from './formats/parseOsmand.ts';
import { type ParsedPoint, REJECTIONS, type Rejection, rateExceeded } from './formats/parsePoint.ts';
import { parseTraccar } from './formats/parseTraccar.ts';
import { type Ingest, IngestOverload } from './ingest.ts';
import { type IngestBodies, parsePositionJson } from './ingestBodies.ts';

type PositionPorts = StorePorts & TokenPorts;

interface IngestAppPorts extends Omit<PositionPorts, 'ingest'> {
  /** Absent in pods without the role: then only the probes and metrics are served. */
  readonly ingest: Ingest | null;
  readonly probes: Probes;
  readonly metrics: PositionPorts['metrics'] & {
    readonly observeRequest: Observe;
    exposition(): Promise<{ readonly contentType: string; readonly text: string }>;
  };
  readonly log: ErrorLog;
  readonly onDamaged: ErrorPorts['onDamaged'];
}

/** The listener for positions, on a port of its own, with the probes and metrics of the pod. */
export function ingestApp(ports: IngestAppPorts): Express {
  return expressApp(
    ports.metrics.observeRequest,
    (app) => {
      app.all('/metrics', onlyMethods('GET', 'HEAD'), async (_request, response) => {
        const { contentType, text } = await ports.metrics.exposition();
        response.set('Content-Type', contentType).end(text);
      });
      probeRoutes(app, ports.probes, true);
      if (ports.ingest !== null) positionRoutes(app, { ...ports, ingest: ports.ingest });
    },
    (error, request) => overloadAnswer(error) ?? unexpectedErrorAnswer(error, request, ports, 'INVALID_BODY'),
  );
}

function overloadAnswer(error: unknown): Answer | null {
  const isCrowded = error instanceof Overloaded;
  if (!isCrowded && !(error instanceof IngestOverload)) return null;
  const reason = isCrowded ? 'too many bodies wait to be read' : error.message;
  return errorAnswer('SERVICE_UNAVAILABLE', `${reason}; send again shortly`);
}

/** The routes that take positions. */
function positionRoutes(app: Express, ports: PositionPorts): void {
  const guard = requireToken(ports, () => undefined);
  app.all('/positions', named('/positions'), guard, onlyMethods('POST'), async (request, response) => {
    send(response, await positions(ports, request), request.method);
  });
  app.all('/traccar', named('/traccar'), guard, onlyMethods('POST'), async (request, response) => {
    send(response, await traccar(ports, request), request.method);
  });
  osmandRoute(app, ports);
}

async function positions(ports: PositionPorts, request: Request): Promise<Answer> {
  const network = networkOf(ports, request);
  const batch = await ports.bodies.readBatch(request, network, windowOf(ports));
  if (!batch.ok) return batch.error === 'TOO_MANY' ? TOO_MANY_POINTS : NOT_JSON;
  return storedAnswer(ports, network, await storeBatch(ports, batch.value));
}

const TOO_MANY_POINTS = errorAnswer(
  'PAYLOAD_TOO_LARGE',
  `a request may carry at most ${MAX_POINTS} points; nothing was stored`,
);

/** A rejected position is answered with 200 too: Traccar would send it again and again. */
async function traccar(ports: PositionPorts, request: Request): Promise<Answer> {
  const network = networkOf(ports, request);
  const body = parsePositionJson(await ports.bodies.readPosition(request, network));
  if (!body.ok) return body.error === 'not_json' ? NOT_JSON : TOO_MANY_VALUES;
  const { nowMs, oldestMs } = windowOf(ports);
  return storedAnswer(ports, network, await storePoint(ports, parseTraccar(body.value, nowMs, oldestMs)));
}

/**
 * The route of phones, which cannot send headers: it takes the token as a parameter too, so the body, a form, is read
 * before the token is known.
 */
function osmandRoute(app: Express, ports: PositionPorts): void {
  app.all(
    '/osmand',
    named('/osmand'),
    async (request, _response, next) => {
      request.body = await ports.bodies.readForm(request, networkOf(ports, request));
      next();
    },
    requireToken(ports, (request) => readTokenParameter(queryOf(request), formOf(request))),
    onlyMethods('GET', 'POST'),
    async (request, response) => {
      send(response, await osmand(ports, request), request.method);
    },
  );
}

async function osmand(ports: PositionPorts, request: Request): Promise<Answer> {
  const { nowMs, oldestMs } = windowOf(ports);
  if (isJson(request)) {
    const body = parsePositionJson(request.body as Buffer);
    if (!body.ok) return body.error === 'not_json' ? NOT_JSON : TOO_MANY_VALUES;
    return stored(ports, request, parseOsmandJson(body.value, nowMs, oldestMs));
  }
  const params = readOsmandParams(queryOf(request), formOf(request));
  if (params === 'given_twice') return errorAnswer('BAD_REQUEST', 'a parameter is given twice');
  if (params === 'too_many') return errorAnswer('BAD_REQUEST', 'too many parameters are given');
  return stored(ports, request, parseOsmand(params, nowMs, oldestMs));
}

async function stored(
  ports: PositionPorts,
  request: Request,
  point: Result<ParsedPoint, Rejection>,
): Promise<Answer> {
  const summary = await storePoint(ports, point);
  const [rejected] = summary.rejected;
  if (rejected !== undefined) return errorAnswer('BAD_REQUEST', rejected.message);
  return storedAnswer(ports, networkOf(ports, request), summary);
}

function isJson({ headers, body }: Request): boolean {
  return (body as Buffer).length > 0 && /^application\/json\b/i.test(headers['content-type'] ?? '');
}

const queryOf = ({ originalUrl }: Request): string => originalUrl.split(/\?(.*)/s, 2)[1] ?? '';

const formOf = (request: Request): string =>
  isJson(request) ? '' : (request.body as Buffer).toString('utf8');

interface TokenPorts {
  readonly senders: SenderAuthorizer;
  readonly trustedProxies: CidrSet;
}

/** The network that the calls of this sender are counted by. A request asks for it several times. */
function networkOf(ports: TokenPorts, request: Request): string {
  let network = networks.get(request);
  if (network === undefined) {
    network = clientOf(ports, request).network;
    networks.set(request, network);
  }
  return network;
}

const networks = new WeakMap<Request, string>();

/** Lets those through who show a token, in the header or where `elsewhere` finds one. */
function requireToken(
  ports: TokenPorts,
  elsewhere: (request: Request) => string | undefined,
): RequestHandler {
  return async (request, response, next) => {
    const given = request.get('x-ingest-token') ?? elsewhere(request);
    const decision = await ports.senders.authorize(networkOf(ports, request), given);
    if (decision === 'granted') next();
    else send(response, ANSWERS[decision], request.method);
  };
}

const ANSWERS = {
  denied: errorAnswer('FORBIDDEN', 'the ingest token is missing or wrong'),
  limited: errorAnswer(
    'TOO_MANY_REQUESTS',
    'too many wrong ingest tokens from this address; try again later',
  ),
};

const STORE_DEADLINE_MS = 15_000;

interface StorePorts {
  readonly ingest: Ingest;
  readonly bodies: IngestBodies;
  readonly longestHistoryDays: number;
  readonly clock: Clock;
  readonly metrics: { countRejected(points: number): void };
}

/** Between which instants, with some tolerance for the newer end, points are taken. */
function windowOf({ clock, longestHistoryDays }: StorePorts): { nowMs: number; oldestMs: number } {
  const nowMs = clock();
  return { nowMs, oldestMs: nowMs - longestHistoryDays * DAY_MS };
}

/**
 * Stores what could be read; answers after the commit, never before. When Postgres does not answer, the answer asks
 * the sender to try again; what is stored later after all is a duplicate then.
 */
async function storeBatch({ ingest, metrics }: StorePorts, batch: Batch): Promise<Summary> {
  const outcomes = await withDeadline(
    ingest.store(batch.fixes.map(({ fix }) => fix)),
    STORE_DEADLINE_MS,
    'storing points',
  );
  metrics.countRejected(batch.rejected.length);
  return summarize(batch, outcomes);
}

/** The same for one point. */
function storePoint(ports: StorePorts, point: Result<ParsedPoint, Rejection>): Promise<Summary> {
  if (!point.ok)
    return storeBatch(ports, { fixes: [], rejected: [{ index: 0, ...point.error }], ignored: [] });
  const { fix, ignored } = point.value;
  return storeBatch(ports, {
    fixes: [{ index: 0, fix }],
    rejected: [],
    ignored: ignored.map((field) => ({ index: 0, field })),
  });
}

/** The answer to what was sent from `network`. */
async function storedAnswer({ bodies }: StorePorts, network: string, summary: Summary): Promise<Answer> {
  if (!isLongSummary(summary)) return { status: 200, body: JSON.stringify({ data: summary }) };
  return { status: 200, body: await bodies.inTurns(network, summaryJson(summary)) };
}

const NOT_JSON = errorAnswer('INVALID_BODY', 'the body is not JSON; nothing was stored');

const TOO_MANY_VALUES = errorAnswer(
  'PAYLOAD_TOO_LARGE',
  'the body has more values than any position; nothing was stored',
);

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
    if (outcome === 'duplicate') count.duplicates++;
    else if (typeof outcome === 'object') {
      rejected.push({ index: batch.fixes[n]?.index ?? n, ...rateExceeded(outcome) });
    } else if (outcome === 'unknown_device' || outcome === 'too_complex') {
      const rejection = outcome === 'too_complex' ? REJECTIONS.TOO_COMPLEX : REJECTIONS.UNKNOWN_DEVICE;
      rejected.push({ index: batch.fixes[n]?.index ?? n, ...rejection });
    } else {
      count.accepted++;
      if (outcome === 'late') count.late++;
    }
  });
  return { ...count, rejected: rejected.sort((a, b) => a.index - b.index), ignored: batch.ignored };
}

const STEP_ITEMS = 250;

/** Whether the summary is so long that its JSON is made in steps. */
function isLongSummary({ rejected, ignored }: Summary): boolean {
  return rejected.length + ignored.length > STEP_ITEMS;
}

/** The JSON of `{ data: summary }`: a batch may have 10 000 points to reject, or nine fields of each to ignore. */
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
