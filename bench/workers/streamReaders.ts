import { get, type IncomingMessage } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { postPoints } from '../setup/points.ts';
import { answerQuestions } from '../worker.ts';

export type ReadersQuestion =
  /** Opens streams, `perKey` with each key, that nobody looks into. */
  | { readonly kind: 'open'; readonly api: string; readonly keys: readonly string[]; readonly perKey: number }
  | { readonly kind: 'close' }
  /** Posts points for some seconds and measures how long it takes until a stream elsewhere brings each. */
  | {
      readonly kind: 'follow';
      readonly api: string;
      readonly ingest: string;
      readonly key: string;
      readonly devices: number;
      readonly pointsPerSecond: number;
      readonly seconds: number;
    }
  /** Posts points as fast as they are taken. */
  | {
      readonly kind: 'ingest';
      readonly ingest: string;
      readonly firstDevice: number;
      readonly devices: number;
      readonly seconds: number;
    };

export interface ReadersReply {
  readonly open: number;
  readonly latenciesMs: readonly number[];
  readonly pointsPerSecond: number;
}

const BATCH = 10;
const SENDERS = 8;
const OPENINGS = 50;

// A worker: readers of streams and senders of points, so that the pods have their processors to themselves.
let streams: IncomingMessage[] = [];
// Later than the positions that the world begins with.
let clockMs = Date.now() + 60_000;

answerQuestions(async (question: ReadersQuestion): Promise<ReadersReply> => {
  const nothing = { open: streams.length, latenciesMs: [], pointsPerSecond: 0 };
  switch (question.kind) {
    case 'open': {
      const all = question.keys.flatMap((key) => Array.from({ length: question.perKey }, () => key));
      for (let at = 0; at < all.length; at += OPENINGS) {
        const some = all
          .slice(at, at + OPENINGS)
          .map((key) => openStream(question.api, key, 'snapshot=false'));
        streams.push(...(await Promise.all(some)));
      }
      for (const stream of streams) stream.resume();
      return { ...nothing, open: streams.length };
    }
    case 'close':
      for (const stream of streams) stream.destroy();
      streams = [];
      return { ...nothing, open: 0 };
    case 'follow':
      return { ...nothing, latenciesMs: await follow(question) };
    case 'ingest':
      return { ...nothing, pointsPerSecond: await ingest(question) };
  }
});

function openStream(api: string, key: string, query: string): Promise<IncomingMessage> {
  return new Promise((resolve, reject) => {
    const request = get(`${api}/api/v3/stream?${query}`, { headers: { 'X-API-Key': key }, agent: false });
    request.on('error', reject);
    request.on('response', (response) => {
      response.on('error', () => undefined); // closed here
      if (response.statusCode === 200) resolve(response);
      else reject(new Error(`a stream is answered with ${response.statusCode}`));
    });
  });
}

async function follow(question: ReadersQuestion & { kind: 'follow' }): Promise<number[]> {
  const { api, ingest, key, devices, pointsPerSecond, seconds } = question;
  const stream = await openStream(api, key, 'snapshot=false&include=devices');
  /** Of points that were sent and that the stream has not brought, by device. */
  const awaited = new Map<string, { readonly recordedAtMs: number; readonly sentAtMs: number }[]>();
  const latenciesMs: number[] = [];
  const missing = () => [...awaited.values()].reduce((sum, points) => sum + points.length, 0);
  let text = '';
  stream.setEncoding('utf8').on('data', (chunk: string) => {
    text += chunk;
    const end = text.lastIndexOf('\n\n');
    if (end === -1) return;
    for (const [, data = ''] of text.slice(0, end).matchAll(/^event: device\nid: .*\ndata: (.*)$/gm)) {
      const { imei, location } = JSON.parse(data) as { imei: string; location: { recorded_at: string } };
      const points = awaited.get(imei) ?? [];
      // A stream may leave out positions that a newer one of their device has overtaken.
      while (points[0] !== undefined && points[0].recordedAtMs <= Date.parse(location.recorded_at))
        latenciesMs.push(performance.now() - (points.shift()?.sentAtMs ?? 0));
    }
    text = text.slice(end + 2);
  });
  const batches = Math.ceil((seconds * pointsPerSecond) / BATCH);
  const startMs = performance.now();
  const posting: Promise<unknown>[] = [];
  for (let n = 0; n < batches; n++) {
    const dueMs = startMs + (n * BATCH * 1_000) / pointsPerSecond;
    if (dueMs > performance.now()) await sleep(dueMs - performance.now());
    const points = batchOf(n, devices);
    for (const { imei, recorded_at: recordedAtMs } of points) {
      const ofDevice = awaited.get(imei) ?? [];
      ofDevice.push({ recordedAtMs, sentAtMs: performance.now() });
      awaited.set(imei, ofDevice);
    }
    posting.push(postPoints(ingest, points));
  }
  await Promise.all(posting);
  const untilMs = performance.now() + 5_000;
  while (missing() > 0 && performance.now() < untilMs) await sleep(20);
  stream.destroy();
  if (missing() > 0) throw new Error(`${missing()} points never came`);
  return latenciesMs;
}

async function ingest(question: ReadersQuestion & { kind: 'ingest' }): Promise<number> {
  const { ingest, firstDevice, devices, seconds } = question;
  const startMs = performance.now();
  let count = 0;
  const send = async (sender: number): Promise<void> => {
    for (let n = 0; performance.now() - startMs < seconds * 1_000; n++) {
      const points = batchOf(n * SENDERS + sender, devices, 100, firstDevice);
      await postPoints(ingest, points);
      count += points.length;
    }
  };
  await Promise.all(Array.from({ length: SENDERS }, (_, sender) => send(sender)));
  return (count * 1_000) / (performance.now() - startMs);
}

function batchOf(n: number, devices: number, count = BATCH, firstDevice = 0) {
  clockMs += 1;
  return Array.from({ length: count }, (_, k) => ({
    imei: simulatedImei(firstDevice + ((n * count + k) % devices)),
    recorded_at: clockMs,
    latitude: 45 + (n % 1_000) / 10_000,
    longitude: 9 + k / 1_000,
    speed_kmh: 50,
  }));
}
