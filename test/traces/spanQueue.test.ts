import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { AlwaysOnSampler, type SpanExporter, TracerProvider } from '@opentelemetry/sdk-trace';
import { SPANS_MAX, type SpanOutcome, SpanQueue } from '../../src/traces/spanQueue.ts';

type OnResult = Parameters<SpanExporter['export']>[1];

/** A queue before a collector that answers when the test says so. */
function makeQueue(t: TestContext) {
  const counted: Record<SpanOutcome, number> = { exported: 0, queue_full: 0, export_failed: 0 };
  const open: OnResult[] = [];
  const exporter: SpanExporter = {
    export: (_spans, onResult) => void open.push(onResult),
    shutdown: () => Promise.resolve(),
  };
  const queue = new SpanQueue(exporter, (outcome, spans) => {
    counted[outcome] += spans;
  });
  const provider = new TracerProvider({ sampler: new AlwaysOnSampler(), spanProcessors: [queue] });
  const tracer = provider.getTracer('test');
  const end = (count: number) => {
    for (let n = 0; n < count; n++) tracer.startSpan('one').end();
  };
  // A batch that waits for its answer keeps a timer of the SDK.
  t.after(async () => {
    let isFlushed = false;
    const flushed = provider.shutdown().then(() => {
      isFlushed = true;
    });
    while (!isFlushed) {
      for (const onResult of open.splice(0)) onResult({ code: 0 });
      await new Promise(setImmediate);
    }
    await flushed;
  });
  return { queue, counted, open, end };
}

describe('spans that wait for the collector', () => {
  test('are bounded, and those beyond are counted: in the queue and on their way alike', async (t) => {
    const { counted, open, end } = makeQueue(t);
    end(SPANS_MAX);
    assert.equal(counted.queue_full, 0);
    assert.equal(open.length, 1, 'one batch is on its way');
    end(1_000);
    assert.deepEqual(counted, { exported: 0, queue_full: 1_000, export_failed: 0 });
  });

  test('make room when a batch was taken, and when it was lost', async (t) => {
    const { counted, open, end } = makeQueue(t);
    end(SPANS_MAX + 1);
    open.shift()?.({ code: 0 });
    const taken = counted.exported;
    assert.ok(taken > 0);
    end(taken);
    assert.equal(counted.queue_full, 1);
    await new Promise(setImmediate);
    open.shift()?.({ code: 1, error: new Error('away') });
    assert.ok(counted.export_failed > 0);
    end(counted.export_failed);
    assert.equal(counted.queue_full, 1);
  });

  test('are sent by a flush', async (t) => {
    const { queue, counted, open, end } = makeQueue(t);
    end(10);
    const flushed = queue.forceFlush();
    open.shift()?.({ code: 0 });
    await flushed;
    assert.deepEqual(counted, { exported: 10, queue_full: 0, export_failed: 0 });
  });
});
