import { createServer, type IncomingMessage } from 'node:http';
import { openTraces } from '../../../src/traces/openTraces.ts';
import type { BenchCase, CaseContext, CaseOutcome, Row } from '../../benchCase.ts';
import { median } from '../../measure/latencies.ts';
import { measureCalls } from '../../measure/measureCalls.ts';
import { metricsOf } from '../../measure/noise.ts';
import { listen } from '../../setup/listen.ts';
import { askLoad, openHttpLoad } from '../../setup/measuredServer.ts';
import { nearestPaths } from '../../setup/places.ts';
import { openPod } from '../../setup/pods.ts';
import { createWorld } from '../../setup/world.ts';
import { openWorker } from '../../worker.ts';
import type { IngestLoad, IngestResult } from '../../workers/ingestLoad.ts';

const DEVICES = { usual: 10_000, smoke: 200 };
/** Short ones in turn: what is looked for is less than what else changes within seconds. */
const ROUNDS = 12;
const WARMUP_SECONDS = 1;
const SMOKE_SECONDS = 0.1;
const DECISION_SECONDS = 1;
const SENDERS = 4;
const BATCH = 10;
const BATCHES = { usual: 30, smoke: 1 };
const SPAN_MS = 40 * 24 * 3_600_000;

/**
 * What one call in a hundred costs is less than the noise of two processes. So ten times as many are recorded, and a tenth of
 * what they cost is shown: the noise is then a tenth as well.
 */
const RECORDED_TIMES = 10;

/** What a pod is told of traces, beside the collector; null: nothing. The first two are the same: they show the noise. */
const PODS = {
  absent: null,
  again: null,
  off: { OTEL_TRACES_SAMPLER: 'always_off' },
  tenPercent: { OTEL_TRACES_SAMPLER: 'traceidratio', OTEL_TRACES_SAMPLER_ARG: '0.1' },
} as const;
type PodName = keyof typeof PODS;
const SHOWN: Readonly<Record<PodName, string>> = {
  absent: 'without traces',
  again: 'without traces, another pod',
  off: 'with a collector, nothing is recorded',
  tenPercent: 'one call in ten is recorded',
};

export const traces: BenchCase = {
  about: 'processor time of polls and points, with traces and without',
  run: runTraces,
};

async function runTraces(context: CaseContext): Promise<CaseOutcome> {
  const { databaseUrl, smoke } = context;
  const devices = context.sizes?.at(-1) ?? (smoke ? DEVICES.smoke : DEVICES.usual);
  const { key } = await createWorld(context, devices);
  const collector = createServer((request, response) => {
    request.resume();
    request.on('end', () => response.writeHead(200, { 'Content-Type': 'application/json' }).end('{}'));
  });
  const endpoint = `http://127.0.0.1:${await listen(collector)}`;
  await using opened = new AsyncDisposableStack();
  const names = smoke ? (['absent', 'tenPercent'] as const) : (Object.keys(PODS) as PodName[]);
  const pods = await Promise.all(
    names.map(async (name) => {
      const pod = opened.use(openPod());
      const settings = PODS[name];
      const variables = settings === null ? {} : { OTEL_EXPORTER_OTLP_ENDPOINT: endpoint, ...settings };
      const { url, ingestUrl } = await pod.ask({ kind: 'start', databaseUrl, redisUrl: null, variables });
      opened.defer(async () => void (await pod.ask({ kind: 'stop' })));
      return { name, url, ingestUrl, cpuUs: async () => (await pod.ask({ kind: 'usage' })).cpuUs };
    }),
  );
  await using load = openHttpLoad();
  await using points = openWorker<IngestLoad, IngestResult>('ingestLoad');
  const source = { devices, senders: SENDERS, batch: BATCH, startMs: Date.now() - SPAN_MS };
  const poll = async ({ url }: (typeof pods)[number], seconds: number) => {
    const calls = { urls: [url], headers: { 'X-API-Key': key }, paths: nearestPaths(256) };
    return (await askLoad(load, calls, seconds)).completed;
  };
  const batchesPerSender = smoke ? BATCHES.smoke : BATCHES.usual;
  const send = async ({ ingestUrl }: (typeof pods)[number]) =>
    (await points.ask({ urls: [ingestUrl], source, batchesPerSender })).points;
  const used: Record<'polls' | 'points', Map<PodName, number[]>> = { polls: new Map(), points: new Map() };
  const seconds = smoke ? SMOKE_SECONDS : context.seconds / ROUNDS;
  for (const pod of smoke ? [] : pods) {
    await poll(pod, WARMUP_SECONDS);
    await send(pod);
  }
  for (let round = 0; round < (smoke ? 1 : ROUNDS); round++) {
    for (const pod of round % 2 === 0 ? pods : pods.toReversed()) {
      for (const what of ['polls', 'points'] as const) {
        const beforeUs = await pod.cpuUs();
        const count = await (what === 'polls' ? poll(pod, seconds) : send(pod));
        const each = ((await pod.cpuUs()) - beforeUs) / count;
        used[what].set(pod.name, [...(used[what].get(pod.name) ?? []), each]);
      }
    }
  }
  const { rows, metrics, noise } = summarize(used);
  const spans = await spansOf(pods.find(({ name }) => name === 'tenPercent')?.ingestUrl ?? '');
  const decision = await measureDecision(endpoint, smoke ? SMOKE_SECONDS : DECISION_SECONDS);
  return {
    kind: 'measured',
    size: `${devices} devices`,
    rows: [...rows, { what: 'to decide that a call is not recorded', unit: 'calls', ...decision }],
    metrics: { ...metrics, decision_us: decision.cpuUs },
    noise,
    notes: [
      `Of ${spans.exported + spans.dropped} spans ${spans.dropped} were lost, which costs less than sending them.`,
    ],
  };
}

/** What became of the spans of a pod. */
async function spansOf(ingestUrl: string): Promise<{ exported: number; dropped: number }> {
  const metrics = await (await fetch(`${ingestUrl}/metrics`)).text();
  const sum = (name: string): number =>
    [...metrics.matchAll(new RegExp(`^${name}(?:\\{.*\\})? (.+)$`, 'gm'))].reduce(
      (all, [, n]) => all + Number(n),
      0,
    );
  return {
    exported: sum('fleet_trace_spans_exported_total'),
    dropped: sum('fleet_trace_spans_dropped_total'),
  };
}

/** What a call costs that is looked at and not recorded, with the headers of a browser. */
async function measureDecision(endpoint: string, seconds: number) {
  const ignore = (): void => undefined;
  const { traces, close } = openTraces({
    config: { endpoint, headers: {}, serviceName: 'bench', rule: { ratio: 0, isParentBased: true } },
    version: '0',
    podId: 'bench',
    log: { info: ignore, warn: ignore },
    tell: ignore,
    count: ignore,
    onIgnored: ignore,
  });
  const names = [
    'host',
    'connection',
    'x-api-key',
    'accept',
    'accept-language',
    'accept-encoding',
    'user-agent',
  ];
  const request = { method: 'GET', rawHeaders: names.flatMap((name) => [name, 'value']) } as IncomingMessage;
  const call = { request, pattern: '/api/v3/devices/nearest', startedAtMs: 0 };
  const times = measureCalls(seconds, () => traces.ofCall(call, () => 1));
  await close();
  return { perSecond: times.perSecond, cpuUs: times.cpuUs };
}

function summarize(used: Readonly<Record<'polls' | 'points', Map<PodName, number[]>>>) {
  const rows: Row[] = [];
  const ratios: Record<string, readonly number[]> = {};
  for (const [what, byPod] of Object.entries(used)) {
    const without = byPod.get('absent') as number[];
    for (const [name, times] of byPod) {
      rows.push({ what: `${what}, ${SHOWN[name]}`, unit: what, cpuUs: median(times) });
      if (name === 'absent') continue;
      const shown = { again: 'noise', off: 'off', tenPercent: 'at_1_percent' }[name];
      const part = name === 'tenPercent' ? RECORDED_TIMES : 1;
      ratios[`${what}_${shown}`] = times.map(
        (time, round) => 1 + (time / (without[round] as number) - 1) / part,
      );
    }
  }
  return { rows, ...metricsOf(ratios) };
}
