import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-http';
import { resourceFromAttributes } from '@opentelemetry/resources';
import { AlwaysOnSampler, TracerProvider } from '@opentelemetry/sdk-trace';
import type { TraceConfig } from '../config.ts';
import { type SpanOutcome, SpanQueue } from './spanQueue.ts';
import type { Tell } from './tracedEvents.ts';
import { Traces } from './traces.ts';

/** A collector that takes longer has lost the batch. */
const EXPORT_TIMEOUT_MS = 5_000;

interface OpenPorts {
  readonly config: TraceConfig;
  readonly version: string;
  readonly podId: string;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  readonly tell: Tell;
  readonly count: (outcome: SpanOutcome, spans: number) => void;
  readonly onIgnored: () => void;
}

export interface OpenTraces {
  readonly traces: Traces;
  /** Sends what has ended. The caller limits how long it may take. */
  close(): Promise<void>;
}

/** Loads the SDK of OpenTelemetry, so only a pod that sends traces imports this file, and later than all others. */
export function openTraces({ config, version, podId, log, count, ...ports }: OpenPorts): OpenTraces {
  const { endpoint, headers, serviceName, rule } = config;
  const exporter = new OTLPTraceExporter({
    url: `${endpoint.replace(/\/$/, '')}/v1/traces`,
    headers: { ...headers },
    timeoutMillis: EXPORT_TIMEOUT_MS,
  });
  let isFailing = false;
  const queue = new SpanQueue(exporter, (outcome, spans) => {
    count(outcome, spans);
    if (outcome === 'queue_full' || isFailing === (outcome === 'export_failed')) return;
    isFailing = !isFailing;
    if (isFailing) log.warn({}, 'the collector does not take spans; they are lost');
    else log.info({}, 'the collector takes spans again');
  });
  const provider = new TracerProvider({
    resource: resourceFromAttributes({
      'service.name': serviceName,
      'service.version': version,
      'service.instance.id': podId,
    }),
    // What reaches it is sampled already.
    sampler: new AlwaysOnSampler(),
    spanProcessors: [queue],
  });
  const tracer = provider.getTracer('fleet', version);
  return {
    traces: new Traces({ ...ports, tracer, rule, random: Math.random }),
    close: () => provider.shutdown(),
  };
}
