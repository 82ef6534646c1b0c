import {
  type Context,
  ROOT_CONTEXT,
  type Span as SdkSpan,
  SpanKind,
  SpanStatusCode,
  type Tracer,
  trace,
} from '@opentelemetry/api';
import type { Span, SpanAttributes } from './span.ts';

interface NewSpan {
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes: SpanAttributes;
  /** By performance.now(). */
  readonly startedAtMs: number;
}

/** A span of the SDK. Its times are those of performance.now(), which no change of the system clock moves. */
export class RecordedSpan implements Span {
  readonly #tracer: Tracer;
  readonly #span: SdkSpan;
  #step: RecordedSpan | null = null;
  #isEnded = false;

  /** `parent` holds the span that it is a part of, or none. */
  constructor(tracer: Tracer, parent: Context, { name, kind, attributes, startedAtMs }: NewSpan) {
    this.#tracer = tracer;
    this.#span = tracer.startSpan(
      name,
      { kind, attributes: { ...attributes }, startTime: startedAtMs },
      parent,
    );
  }

  get traceparent(): string {
    const { traceId, spanId } = this.#span.spanContext();
    return `00-${traceId}-${spanId}-01`;
  }

  child(name: string, attributes: SpanAttributes = {}, startedAtMs = performance.now()): RecordedSpan {
    const isCall = 'db.system.name' in attributes || 'server.address' in attributes;
    const kind = isCall ? SpanKind.CLIENT : SpanKind.INTERNAL;
    const context = trace.setSpan(ROOT_CONTEXT, this.#span);
    return new RecordedSpan(this.#tracer, context, { name, kind, attributes, startedAtMs });
  }

  step(name: string, attributes?: SpanAttributes): RecordedSpan {
    this.#step?.end();
    this.#step = this.child(name, attributes);
    return this.#step;
  }

  set(attributes: SpanAttributes): void {
    this.#span.setAttributes({ ...attributes });
  }

  fail(type: string): void {
    this.#span.setAttribute('error.type', type).setStatus({ code: SpanStatusCode.ERROR });
  }

  end(): void {
    if (this.#isEnded) return;
    this.#isEnded = true;
    this.#step?.end();
    this.#span.end(performance.now());
  }
}
