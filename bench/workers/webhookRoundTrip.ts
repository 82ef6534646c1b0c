import { once } from 'node:events';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import type { SelfSignedCertificate } from '../../src/cli/commands/webhook.ts';
import { Latencies } from '../measure/latencies.ts';
import { cpuUs } from '../measure/usage.ts';
import { PointSource, type PointSourceOptions } from '../setup/pointSource.ts';
import { postPoints } from '../setup/points.ts';
import { HANGING_PATH, HEALTHY_PATH, openReceiver } from '../setup/receivers.ts';
import { answerQuestions } from '../worker.ts';

export type RoundTripQuestion =
  | { readonly kind: 'listen'; readonly certificate: SelfSignedCertificate }
  /** Sends points at a steady rate. Earlier deliveries are forgotten. */
  | PointOrder
  /** Waits until this many deliveries have arrived. */
  | { readonly kind: 'receive'; readonly deliveries: number };

export interface PointOrder {
  readonly kind: 'send';
  readonly urls: readonly string[];
  readonly source: PointSourceOptions;
  readonly batchesPerSender: number;
  readonly pointsPerSecond: number;
  /** One in so many points is an event: it has a new RFID tag. */
  readonly eventEvery: number;
}

export interface RoundTripReply {
  readonly receiver: string;
  readonly events: number;
  /** From the first point to the answer of the last. */
  readonly sentSeconds: number;
  /** Encoded Latencies: from just before a point was posted until the request of its delivery. */
  readonly latencies: string;
  /** From the first point to the last delivery. */
  readonly seconds: number;
  /** Processor time of this process since the first point. */
  readonly cpuUs: number;
}

const SLOW_MS = 5_000;
/** Missing deliveries are lost when none has arrived for this long. */
const SILENCE_LIMIT_MS = 20_000;
const POLL_MS = 10;

let receiver = '';
let source: PointSource | null = null;
let cpuBeforeUs = cpuUs();
let startMs = 0;
let sentMs = 0;
let lastMs = 0;
let sentPoints = 0;
let events = 0;
let latencies = new Latencies();
/** Path and event id of each delivery, so that one that arrives twice counts once. */
const received = new Set<string>();
const openPaths = new Set<string>();
let error: string | null = null;

// A worker: the trackers and the receivers in one process, so that one clock measures the whole way.
answerQuestions(async (question: RoundTripQuestion): Promise<RoundTripReply> => {
  if (question.kind === 'listen') receiver = await openReceiver(question.certificate, receiveOne);
  if (question.kind === 'send') await send(question);
  if (question.kind === 'receive') await receive(question.deliveries);
  const seconds = (lastMs - startMs) / 1_000;
  const sentSeconds = (sentMs - startMs) / 1_000;
  const usedUs = cpuUs() - cpuBeforeUs;
  return { receiver, events, sentSeconds, latencies: latencies.encoded(), seconds, cpuUs: usedUs };
});

async function send(order: PointOrder): Promise<void> {
  source ??= new PointSource(order.source);
  latencies = new Latencies();
  received.clear();
  sentPoints = 0;
  events = 0;
  cpuBeforeUs = cpuUs();
  startMs = performance.now();
  lastMs = startMs;
  const senders = Array.from({ length: order.source.senders }, (_, sender) => sender);
  await Promise.all(senders.map((sender) => sendBatches(order, source as PointSource, sender)));
  sentMs = performance.now();
}

/** Sends the batches of one sender one after the other, so that the points of a device stay in order. */
async function sendBatches(order: PointOrder, source: PointSource, sender: number): Promise<void> {
  const { senders, batch } = order.source;
  const url = order.urls[sender % order.urls.length] as string;
  for (let n = 0; n < order.batchesPerSender; n++) {
    const dueMs = startMs + ((n * senders + sender) * batch * 1_000) / order.pointsPerSecond;
    await sleep(Math.max(0, dueMs - performance.now()));
    const points = source.next(sender);
    const atMs = performance.now();
    const tagged = points.map((point) => ({ ...point, rfid: tag(order, atMs) }));
    const { accepted, late } = await postPoints(url, tagged);
    if (accepted !== batch || late !== 0)
      throw new Error(`of ${batch} points ${accepted} were accepted, ${late} late`);
  }
}

/** The time of posting, and a number, since the same tag twice would not be an event. */
function tag({ eventEvery }: PointOrder, atMs: number): string | undefined {
  if (sentPoints++ % eventEvery !== 0) return undefined;
  return `${atMs} ${events++}`;
}

async function receive(deliveries: number): Promise<void> {
  const isSilent = () => performance.now() - Math.max(sentMs, lastMs) > SILENCE_LIMIT_MS;
  while (received.size < deliveries && !isSilent() && error === null) await sleep(POLL_MS);
  if (error !== null) throw new Error(error);
  if (received.size !== deliveries)
    throw new Error(`${received.size} of ${deliveries} deliveries have arrived`);
}

function receiveOne(request: IncomingMessage, response: ServerResponse): void {
  void answer(request, response).catch((reason: unknown) => {
    error ??= `a delivery could not be received: ${String(reason)}`;
  });
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const atMs = performance.now();
  const path = request.url ?? '';
  if (openPaths.has(path)) error ??= `two requests at once to ${path}`;
  openPaths.add(path);
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  if (path.startsWith(HEALTHY_PATH)) count(path, Buffer.concat(chunks).toString(), atMs);
  else if (path.startsWith(HANGING_PATH)) await once(response, 'close');
  else await sleep(SLOW_MS);
  openPaths.delete(path);
  response.end();
}

function count(path: string, body: string, atMs: number): void {
  const event = JSON.parse(body) as { id: string; data: { rfid: string } };
  const name = `${path} ${event.id}`;
  if (received.has(name)) return;
  received.add(name);
  latencies.add(atMs - Number.parseFloat(event.data.rfid));
  lastMs = Math.max(lastMs, atMs);
}
