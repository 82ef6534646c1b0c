import { hash, timingSafeEqual } from 'node:crypto';
import express, {
  type Express,
  type NextFunction,
  type Request,
  type RequestHandler,
  type Response,
} from 'express';
import helmet from 'helmet';
import type { Clock } from '../base/clock.ts';
import { withDeadline } from '../base/deadline.ts';
import type { Result } from '../base/result.ts';
import { type Batch, MAX_POINTS, parseBatch } from '../engine/parseBatch.ts';
import { parseOsmand } from '../engine/parseOsmand.ts';
import type { ParsedPoint } from '../engine/parsePoint.ts';
import { parseTraccar } from '../engine/parseTraccar.ts';
import { REJECTIONS, type Rejection } from '../engine/rejection.ts';
import { type Ingest, IngestOverload } from '../flows/ingest.ts';
import type { Metrics } from '../metrics.ts';
import { type Answer, errorAnswer } from './answer.ts';
import { type FailureLog, failureAnswer } from './failure.ts';
import { measure, named } from './measure.ts';
import { onlyMethods } from './methodAnswer.ts';
import { type Probes, probeRoutes } from './probes.ts';
import { parseQuery } from './query.ts';
import { send } from './send.ts';

const MAX_BODY_BYTES = 16 * 1024 * 1024;
/** Read before the token is known, since it may stand in the form. */
const MAX_FORM_BYTES = 64 * 1024;
const MS_PER_DAY = 86_400_000;
const STORE_DEADLINE_MS = 15_000;

export interface IngestAppPorts {
  /** Absent in pods without the role: then only the probes and metrics are served. */
  readonly ingest: Ingest | null;
  readonly token: string;
  readonly longestHistoryDays: number;
  readonly clock: Clock;
  readonly probes: Probes;
  readonly metrics: Pick<Metrics, 'exposition' | 'countRejected' | 'observeRequest'>;
  readonly log: FailureLog;
}

/** The listener for positions, on a port of its own, with the probes and metrics of the pod. */
export function ingestApp(ports: IngestAppPorts): Express {
  const app = express();
  app.disable('x-powered-by').disable('etag').set('query parser', false).enable('case sensitive routing');
  app.use(measure(ports.metrics.observeRequest));
  app.use(helmet());
  app.all('/metrics', onlyMethods('GET', 'HEAD'), async (_request, response) => {
    const { contentType, text } = await ports.metrics.exposition();
    response.set('Content-Type', contentType).end(text);
  });
  probeRoutes(app, ports.probes);
  if (ports.ingest !== null) positionRoutes(app, { ...ports, ingest: ports.ingest });
  app.use((request, response) => send(response, errorAnswer('NOT_FOUND'), request.method));
  app.use((error: unknown, request: Request, response: Response, _next: NextFunction) => {
    const answer =
      error instanceof IngestOverload
        ? errorAnswer('SERVICE_UNAVAILABLE', `${error.message}; send again shortly`)
        : failureAnswer(error, request, ports.log, 'INVALID_BODY');
    send(response, answer, request.method);
  });
  return app;
}

type PositionPorts = IngestAppPorts & { readonly ingest: Ingest };

function positionRoutes(app: Express, ports: PositionPorts): void {
  const guard = requireToken(ports.token, () => undefined);
  const body = express.raw({ type: () => true, limit: MAX_BODY_BYTES });
  app.all('/positions', named('/positions'), guard, onlyMethods('POST'), body, async (request, response) => {
    send(response, await positions(ports, request), request.method);
  });
  app.all('/traccar', named('/traccar'), guard, onlyMethods('POST'), body, async (request, response) => {
    send(response, await traccar(ports, request), request.method);
  });
  const form = express.raw({ type: () => true, limit: MAX_FORM_BYTES });
  const guardForm = requireToken(ports.token, tokenParameter);
  app.all(
    '/osmand',
    named('/osmand'),
    form,
    guardForm,
    onlyMethods('GET', 'POST'),
    async (request, response) => {
      send(response, await osmand(ports, request), request.method);
    },
  );
}

async function positions(ports: PositionPorts, request: Request): Promise<Answer> {
  const format = /^application\/(x-)?(nd-?json|jsonl)/i.test(request.headers['content-type'] ?? '')
    ? 'ndjson'
    : 'json';
  const parsed = await drive(parseBatch(bodyOf(request), format, ports.clock(), oldestMs(ports)));
  if (!parsed.ok) {
    return parsed.error === 'TOO_MANY'
      ? errorAnswer(
          'PAYLOAD_TOO_LARGE',
          `a request may carry at most ${MAX_POINTS} points; nothing was stored`,
        )
      : errorAnswer('INVALID_BODY', 'the body is not JSON; nothing was stored');
  }
  return stored(await store(ports, parsed.value));
}

/** A refused position is answered with 200 too: Traccar would send it again for ever. */
async function traccar(ports: PositionPorts, request: Request): Promise<Answer> {
  const body = parseJson(bodyOf(request).toString('utf8'));
  if (body === undefined) return errorAnswer('INVALID_BODY', 'the body is not JSON; nothing was stored');
  return stored(await store(ports, single(parseTraccar(body, ports.clock(), oldestMs(ports)))));
}

async function osmand(ports: PositionPorts, request: Request): Promise<Answer> {
  const params = osmandParams(request);
  if (params === null) return errorAnswer('BAD_REQUEST', 'a parameter is given twice');
  const summary = await store(ports, single(parseOsmand(params, ports.clock(), oldestMs(ports))));
  const [refused] = summary.rejected;
  return refused === undefined ? stored(summary) : errorAnswer('BAD_REQUEST', refused.message);
}

interface Summary {
  readonly accepted: number;
  readonly duplicates: number;
  readonly late: number;
  readonly rejected: readonly ({ readonly index: number } & Rejection)[];
  readonly ignored: Batch['ignored'];
}

/**
 * Stores what could be read; answers after the commit, never before. When Postgres says nothing the sender is told
 * to try again; what is stored later after all is a duplicate then.
 */
async function store({ ingest, metrics }: PositionPorts, batch: Batch): Promise<Summary> {
  const outcomes = await withDeadline(
    ingest.store(batch.fixes.map(({ fix }) => fix)),
    STORE_DEADLINE_MS,
    'storing points',
  );
  const rejected = [...batch.rejected];
  metrics.countRejected(rejected.length);
  const count = { accepted: 0, duplicates: 0, late: 0 };
  outcomes.forEach((outcome, n) => {
    if (outcome === 'duplicate') count.duplicates++;
    else if (outcome === 'unknown_device') {
      rejected.push({ index: batch.fixes[n]?.index ?? n, ...REJECTIONS.UNKNOWN_DEVICE });
    } else {
      count.accepted++;
      if (outcome === 'late') count.late++;
    }
  });
  return { ...count, rejected: rejected.sort((a, b) => a.index - b.index), ignored: batch.ignored };
}

const stored = (summary: Summary): Answer => ({ status: 200, body: JSON.stringify({ data: summary }) });

function single(point: Result<ParsedPoint, Rejection>): Batch {
  if (!point.ok) return { fixes: [], rejected: [{ index: 0, ...point.error }], ignored: [] };
  return {
    fixes: [{ index: 0, fix: point.value.fix }],
    rejected: [],
    ignored: point.value.ignored.map((field) => ({ index: 0, field })),
  };
}

const oldestMs = (ports: PositionPorts): number => ports.clock() - ports.longestHistoryDays * MS_PER_DAY;

/** Runs a sliced computation, letting other requests in between its slices. */
async function drive<T>(slices: Generator<undefined, T>): Promise<T> {
  for (;;) {
    const step = slices.next();
    if (step.done === true) return step.value;
    await new Promise((resolve) => setImmediate(resolve));
  }
}

/** Without a body express leaves none behind. */
const bodyOf = (request: Request): Buffer => (Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0));

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined; // JSON.parse throws nothing but SyntaxError, and no JSON text is undefined
  }
}

/** Compares digests, so neither content nor length of the token shows in the time taken. */
function requireToken(token: string, elsewhere: (request: Request) => string | undefined): RequestHandler {
  const expected = hash('sha256', token, 'buffer');
  return (request, response, next) => {
    const given = request.get('x-ingest-token') ?? elsewhere(request);
    if (given !== undefined && timingSafeEqual(hash('sha256', given, 'buffer'), expected)) next();
    else send(response, errorAnswer('FORBIDDEN', 'the ingest token is missing or wrong'), request.method);
  };
}

/** Phone apps cannot send headers: /osmand takes the token as a parameter too. One that is given twice is none. */
function tokenParameter(request: Request): string | undefined {
  const tokens = (text: string) => new URLSearchParams(text).getAll('token');
  const form = tokens(formOf(request));
  const given = form.length > 0 ? form : tokens(queryOf(request));
  return given.length === 1 ? given[0] : undefined;
}

/** Query and form fields together; null when one is given twice. */
function osmandParams(request: Request): Record<string, string> | null {
  const query = parseQuery(`?${queryOf(request)}`);
  const form = parseQuery(`?${formOf(request)}`);
  return query === null || form === null ? null : ({ ...query, ...form } as Record<string, string>);
}

const queryOf = ({ originalUrl }: Request): string => originalUrl.split(/\?(.*)/s, 2)[1] ?? '';
const formOf = (request: Request): string => bodyOf(request).toString('utf8');
