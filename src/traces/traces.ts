import type { IncomingMessage } from 'node:http';
import { type Context, ROOT_CONTEXT, SpanKind, TraceFlags, type Tracer, trace } from '@opentelemetry/api';
import { RecordedSpan } from './recordedSpan.ts';
import { isSampled, type SamplingRule, TokenBuckets } from './sampling.ts';
import { IN_POSTGRES, type Span, type SpanAttributes } from './span.ts';
import { type Tell, TracedEvents } from './tracedEvents.ts';
import { parentOf, type RemoteParent } from './traceparent.ts';

/**
 * Calls of one caller that continue a trace of theirs: with the header they could have every call recorded. Beyond that
 * their header is ignored, and the call is as likely to be recorded as any other.
 */
export const CONTINUED = { perSecond: 10, burst: 10, keysMax: 10_000 };

/** The account that makes a call, or the network where no account is known. */
export type CallerOf = (request: IncomingMessage) => string | number;

export interface TracesPorts {
  readonly tracer: Tracer;
  readonly rule: SamplingRule;
  /** From 0 to 1. */
  readonly random: () => number;
  readonly tell: Tell;
  /** Called when a caller's trace is not continued, because the caller has too many. */
  readonly onIgnored: () => void;
}

/** A call that came in. */
interface IncomingCall {
  readonly request: IncomingMessage;
  readonly pattern: string;
  readonly startedAtMs: number;
}

/** An attempt of a delivery. */
interface TracedAttempt {
  readonly eventId: string;
  readonly deliveryId: string;
  readonly attempt: number;
  readonly owner: { readonly webhookId: number };
}

/** Decides what is recorded, before anything is made for it. */
export class Traces {
  readonly #ports: TracesPorts;
  readonly #continued = new TokenBuckets(CONTINUED);
  readonly #events: TracedEvents;

  constructor(ports: TracesPorts) {
    this.#ports = ports;
    this.#events = new TracedEvents(ports.tell);
  }

  /** The span of a call; null when it is not recorded. `callerOf` is asked only for a call that continues a trace. */
  ofCall({ request, pattern, startedAtMs }: IncomingCall, callerOf: CallerOf): Span | null {
    const parent = this.#parentOf(request, callerOf);
    if (parent === 'unsampled' || (parent === null && !this.#begins())) return null;
    const method = request.method as string;
    const attributes = { 'http.request.method': method, 'http.route': pattern };
    return this.#begin(`${method} ${pattern}`, SpanKind.SERVER, attributes, parent, startedAtMs);
  }

  /** The span of an attempt of a delivery, which belongs to the trace of its point where that is known. */
  ofAttempt({ eventId, deliveryId, attempt, owner }: TracedAttempt, claimedFromMs: number): Span | null {
    const parent = this.#events.find(eventId);
    if (parent === null && !this.#begins()) return null;
    const attributes = {
      'fleet.webhook.id': owner.webhookId,
      'fleet.event.id': eventId,
      'fleet.delivery.id': deliveryId,
      'fleet.delivery.attempt': attempt,
    };
    const span = this.#begin('deliver webhook', SpanKind.CONSUMER, attributes, parent, claimedFromMs);
    span.child('claim', IN_POSTGRES, claimedFromMs).end();
    return span;
  }

  /** The deliveries of an event belong to the trace of the point that produced it, unless its world has too many. */
  noteEvent(eventId: string, span: Span, worldId: number): void {
    this.#events.note(eventId, span.traceparent, worldId);
  }

  /** What another pod has told about an event. */
  hear(text: string): void {
    this.#events.hear(text);
  }

  #parentOf(request: IncomingMessage, callerOf: CallerOf): RemoteParent | 'unsampled' | null {
    const parent = parentOf(request.rawHeaders);
    if (parent === null) return null;
    if (!isSampled(this.#ports.rule, parent)) return 'unsampled';
    if (this.#continued.take(callerOf(request), performance.now())) return parent;
    this.#ports.onIgnored();
    return null;
  }

  #begins(): boolean {
    return this.#ports.random() < this.#ports.rule.ratio;
  }

  #begin(
    name: string,
    kind: SpanKind,
    attributes: SpanAttributes,
    parent: RemoteParent | null,
    startedAtMs: number,
  ): RecordedSpan {
    const context = parent === null ? ROOT_CONTEXT : contextOf(parent);
    return new RecordedSpan(this.#ports.tracer, context, { name, kind, attributes, startedAtMs });
  }
}

function contextOf({ traceId, spanId }: RemoteParent): Context {
  return trace.setSpanContext(ROOT_CONTEXT, {
    traceId,
    spanId,
    traceFlags: TraceFlags.SAMPLED,
    isRemote: true,
  });
}
