import {
  BatchSpanProcessor,
  type ReadableSpan,
  type SpanExporter,
  type SpanProcessor,
} from '@opentelemetry/sdk-trace';

/** Spans that wait for the collector or are on their way to it: some megabytes. Further ones are lost. */
export const SPANS_MAX = 4_096;
const BATCH_SPANS = 512;
const SEND_EVERY_MS = 2_000;

/** What became of spans. */
export type SpanOutcome = 'exported' | 'queue_full' | 'export_failed';

type OnResult = Parameters<SpanExporter['export']>[1];
/** `ExportResultCode.SUCCESS` of the SDK. */
const SUCCESS = 0;

/**
 * Collects spans that have ended and sends them in batches. It counts what the SDK loses without a word: spans beyond the
 * bound, and those of a batch that the collector did not take.
 */
export class SpanQueue implements SpanProcessor {
  readonly #batches: BatchSpanProcessor;
  readonly #count: (outcome: SpanOutcome, spans: number) => void;
  #held = 0;

  constructor(exporter: SpanExporter, count: (outcome: SpanOutcome, spans: number) => void) {
    this.#count = count;
    this.#batches = new BatchSpanProcessor({
      exporter: {
        export: (spans, onResult) => exporter.export(spans, this.#counted(spans.length, onResult)),
        shutdown: () => exporter.shutdown(),
      },
      maxQueueSize: SPANS_MAX,
      maxExportBatchSize: BATCH_SPANS,
      scheduledDelayMillis: SEND_EVERY_MS,
    });
  }

  onStart(): void {}

  onEnd(span: ReadableSpan): void {
    if (this.#held >= SPANS_MAX) {
      this.#count('queue_full', 1);
      return;
    }
    this.#held++;
    this.#batches.onEnd(span);
  }

  forceFlush(): Promise<void> {
    return this.#batches.forceFlush();
  }

  shutdown(): Promise<void> {
    return this.#batches.shutdown();
  }

  #counted(spans: number, onResult: OnResult): OnResult {
    return (result) => {
      this.#held -= spans;
      this.#count(result.code === SUCCESS ? 'exported' : 'export_failed', spans);
      onResult(result);
    };
  }
}
