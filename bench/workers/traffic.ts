import { setTimeout as sleep } from 'node:timers/promises';
import { Latencies } from '../measure/latencies.ts';
import { jaggedRing } from '../setup/areas.ts';
import { POLYGON_CENTRE } from '../setup/places.ts';
import { PointSource, type PointSourceOptions } from '../setup/pointSource.ts';
import { postPoints } from '../setup/points.ts';
import { answerQuestions } from '../worker.ts';

export type TrafficQuestion = TrafficOrder | { readonly kind: 'stop' };

export interface TrafficOrder {
  readonly kind: 'start';
  readonly ingestUrl: string;
  readonly apiUrl: string;
  readonly key: string;
  readonly source: PointSourceOptions;
  readonly pointsPerSecond: number;
  readonly areaIds: readonly number[];
  /** 0: none is changed. */
  readonly areasPerSecond: number;
}

export interface TrafficReply {
  readonly points: number;
  readonly areas: number;
  /** Encoded Latencies of the batches of points, each from when it was due until it was stored. */
  readonly latencies: string;
  readonly seconds: number;
}

const VERTICES = 20;
const RADIUS_DEG = 0.005;

let running: { readonly stop: AbortController; readonly done: Promise<TrafficReply> } | null = null;

// A worker: sends points and changes areas at steady rates. Late ones are sent at once, none is skipped.
answerQuestions(async (question: TrafficQuestion): Promise<TrafficReply> => {
  if (question.kind === 'start') {
    const stop = new AbortController();
    // Made before the measurement: trackers make points in reality.
    const source = new PointSource(question.source);
    running = { stop, done: run(question, source, stop.signal) };
    running.done.catch(() => undefined); // reported by the answer to `stop`
    return { points: 0, areas: 0, latencies: '', seconds: 0 };
  }
  if (running === null) throw new Error('the traffic was not started');
  running.stop.abort();
  return running.done;
});

async function run(order: TrafficOrder, source: PointSource, stopped: AbortSignal): Promise<TrafficReply> {
  const startMs = performance.now();
  const { batch } = order.source;
  const latencies = new Latencies();
  const [batches, areas] = await Promise.all([
    atRate(order.pointsPerSecond / batch, stopped, async (_, dueMs) => {
      await sendPoints(order, source);
      latencies.add(performance.now() - dueMs);
    }),
    order.areasPerSecond === 0 ? 0 : atRate(order.areasPerSecond, stopped, (n) => changeArea(order, n)),
  ]);
  return {
    points: batches * batch,
    areas,
    latencies: latencies.encoded(),
    seconds: (performance.now() - startMs) / 1_000,
  };
}

async function atRate(
  perSecond: number,
  stopped: AbortSignal,
  act: (n: number, dueMs: number) => Promise<void>,
): Promise<number> {
  const startMs = performance.now();
  let n = 0;
  for (; !stopped.aborted; n++) {
    const dueMs = startMs + (n * 1_000) / perSecond;
    await sleep(Math.max(0, dueMs - performance.now()));
    await act(n, dueMs);
  }
  return n;
}

async function sendPoints({ ingestUrl, source: { batch } }: TrafficOrder, source: PointSource) {
  const { accepted } = await postPoints(ingestUrl, source.next(0));
  if (accepted !== batch) throw new Error(`${accepted} of ${batch} points were accepted`);
}

async function changeArea({ apiUrl, key, areaIds }: TrafficOrder, n: number): Promise<void> {
  const centre = { lat: POLYGON_CENTRE.lat + (n % 10) / 100, lng: POLYGON_CENTRE.lng };
  const response = await fetch(`${apiUrl}/api/v3/areas/${areaIds[n % areaIds.length]}`, {
    method: 'PATCH',
    headers: { 'Content-Type': 'application/json', 'X-API-Key': key },
    body: JSON.stringify({ points: jaggedRing(VERTICES, centre, RADIUS_DEG, n) }),
  });
  if (!response.ok) throw new Error(`an area was not changed: ${await response.text()}`);
  await response.text();
}
