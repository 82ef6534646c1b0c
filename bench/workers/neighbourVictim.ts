import { Agent, type IncomingMessage, request, type ServerResponse } from 'node:http';
import type { SelfSignedCertificate } from '../../src/cli/commands/webhook.ts';
import { Latencies } from '../measure/latencies.ts';
import type { Victim } from '../neighbours/victim.ts';
import { callWebhooks } from '../setup/pods.ts';
import { INGEST_TOKEN } from '../setup/points.ts';
import { openReceiver } from '../setup/receivers.ts';
import { answerQuestions } from '../worker.ts';

export type VictimQuestion =
  | { readonly kind: 'listen'; readonly certificate: SelfSignedCertificate }
  | ({ readonly kind: 'start' } & VictimOrder)
  /** What was measured since the start or the last mark. */
  | { readonly kind: 'mark' }
  | { readonly kind: 'stop' };

export interface VictimOrder extends Victim {
  readonly apiUrl: string;
  readonly ingestUrl: string;
  readonly extra: VictimCall | null;
}

/** A POST, made every EXTRA_EVERY_MS. Only errors count, since it may take long by itself. */
export interface VictimCall {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

export interface VictimReport {
  readonly url: string;
  /** Encoded Latencies: polls and reads, batches of points, and the time from a point to its delivery. */
  readonly polls: string;
  readonly points: string;
  readonly deliveries: string;
  /** Calls that did not get the expected answer, by what they got instead. */
  readonly failedPolls: Readonly<Record<string, number>>;
  readonly failedPoints: Readonly<Record<string, number>>;
}

const POLL_EVERY_MS = 25;
const READ_EVERY_MS = 250;
const EXTRA_EVERY_MS = 1_000;
const POINTS_EVERY_MS = 50;
const BATCH = 10;
const EVENT_EVERY = 10;
/** Callers and proxies give up after this time. */
const CALL_TIMEOUT_MS = 30_000;
const CONNECTIONS = 256;

let url = '';
let period = newPeriod();
let end: (() => Promise<void>) | null = null;

// A worker: the victim. Calls go out at a steady rate, whether or not answers come, so that a pause of the pod affects
// every call of that time.
answerQuestions(async (question: VictimQuestion): Promise<VictimReport> => {
  if (question.kind === 'listen') url = await openReceiver(question.certificate, receive);
  if (question.kind === 'start') end = await start(question);
  if (question.kind === 'stop') await end?.();
  const report = { ...period.report(), url };
  if (question.kind !== 'listen') period = newPeriod();
  return report;
});

type Counts = Record<string, number>;

function newPeriod() {
  const [polls, points, deliveries] = [new Latencies(), new Latencies(), new Latencies()];
  const failed = { failedPolls: {} as Counts, failedPoints: {} as Counts };
  const times = () => ({
    polls: polls.encoded(),
    points: points.encoded(),
    deliveries: deliveries.encoded(),
  });
  return { polls, points, deliveries, ...failed, report: () => ({ ...times(), ...failed }) };
}

function count(counts: Counts, what: string): void {
  counts[what] = (counts[what] ?? 0) + 1;
}

async function start(order: VictimOrder): Promise<() => Promise<void>> {
  const agent = new Agent({ keepAlive: true, maxSockets: CONNECTIONS });
  const open = new Set<Promise<void>>();
  const track = (done: Promise<void>) => {
    open.add(done);
    void done.finally(() => open.delete(done));
  };
  let sent = 0;
  const caller = (): Record<string, string> => {
    const n = sent++ % order.keys.length;
    return { 'X-API-Key': order.keys[n] as string, 'X-Forwarded-For': `10.0.0.${n + 1}` };
  };
  const ask = (path: string) => poll(agent, order.apiUrl + path, caller());
  const endpoint = { url: `${url}/events`, events: ['rfid'] };
  await callWebhooks(`${order.apiUrl}/api/webhooks`, 'POST', caller(), endpoint);
  const timers = [
    every(POLL_EVERY_MS, (n) => track(ask(order.polls[n % order.polls.length] as string))),
    every(READ_EVERY_MS, (n) => track(ask(order.reads[n % order.reads.length] as string))),
    every(POINTS_EVERY_MS, (n) => track(sendBatch(agent, order, n))),
    every(EXTRA_EVERY_MS, () => track(poll(agent, `${order.ingestUrl}/readyz`, {}))),
  ];
  const { extra } = order;
  if (extra !== null)
    timers.push(every(EXTRA_EVERY_MS, () => track(askExtra(agent, order, extra, caller()))));
  return async () => {
    for (const stop of timers) stop();
    await Promise.all(open);
    agent.destroy();
  };
}

/** Calls `work` at a steady rate. Late calls are made at once, none is skipped. */
function every(ms: number, work: (n: number) => void): () => void {
  const startMs = performance.now();
  let done = 0;
  const timer = setInterval(() => {
    while (done * ms <= performance.now() - startMs) work(done++);
  }, ms);
  return () => clearInterval(timer);
}

async function poll(agent: Agent, url: string, headers: Record<string, string>): Promise<void> {
  const { polls, failedPolls } = period;
  const atMs = performance.now();
  const { status, text } = await exchange(agent, url, 'GET', headers);
  // What an error says tells one 503 from another.
  const [, message = ''] = /"message":"([^"]*)"/.exec(text) ?? [];
  if (status !== '200') count(failedPolls, `${new URL(url).pathname}: ${status} ${message}`);
  polls.add(performance.now() - atMs);
}

async function askExtra(
  agent: Agent,
  order: VictimOrder,
  { path, headers, body }: VictimCall,
  caller: Record<string, string>,
): Promise<void> {
  const { failedPolls } = period;
  const { status } = await exchange(agent, order.apiUrl + path, 'POST', { ...caller, ...headers }, body);
  if (!status.startsWith('2')) count(failedPolls, `${status} to ${path}`);
}

/** At least a second passes between two points of a device, so they arrive in order. */
async function sendBatch(agent: Agent, order: VictimOrder, n: number): Promise<void> {
  const { points, failedPoints } = period;
  const atMs = performance.now();
  const batch = Array.from({ length: BATCH }, (_, place) => ({
    imei: String(order.firstImei + ((n * BATCH + place) % order.devices)),
    recorded_at: Date.now(),
    latitude: 41.9 + (n % 100) * 1e-4,
    longitude: 12.5 + place * 1e-4,
    speed_kmh: 40,
    ...(place === 0 && n % EVENT_EVERY === 0 ? { rfid: `${atMs} ${n}` } : {}),
  }));
  const headers = { 'Content-Type': 'application/json', 'X-Ingest-Token': INGEST_TOKEN };
  const url = `${order.ingestUrl}/positions`;
  const { status, text } = await exchange(agent, url, 'POST', headers, JSON.stringify(batch));
  if (status !== '200') count(failedPoints, status);
  else if (!text.includes(`"accepted":${BATCH}`)) count(failedPoints, 'points left out');
  points.add(performance.now() - atMs);
}

/** The answer. Without one, `status` is the reason. */
function exchange(
  agent: Agent,
  url: string,
  method: string,
  headers: Record<string, string>,
  body?: string,
): Promise<{ status: string; text: string }> {
  return new Promise((resolve) => {
    const timeout = AbortSignal.timeout(CALL_TIMEOUT_MS);
    const fail = (error: NodeJS.ErrnoException) =>
      resolve({ status: timeout.aborted ? 'no answer' : (error.code ?? error.name), text: '' });
    const length = body === undefined ? {} : { 'Content-Length': Buffer.byteLength(body) };
    const asked = request(url, { agent, method, headers: { ...headers, ...length }, signal: timeout });
    asked.once('error', fail);
    asked.once('response', (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => {
        text += chunk;
      });
      response.once('error', fail);
      response.once('end', () => resolve({ status: String(response.statusCode), text }));
    });
    asked.end(body);
  });
}

/** The RFID tag holds the time at which its point was sent. */
function receive(request: IncomingMessage, response: ServerResponse): void {
  const atMs = performance.now();
  let text = '';
  request.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
  });
  request.once('end', () => {
    const { data } = JSON.parse(text) as { data: { rfid: string } };
    period.deliveries.add(atMs - Number.parseFloat(data.rfid));
    response.end();
  });
}
