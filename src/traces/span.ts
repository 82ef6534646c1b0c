/**
 * All that spans say. Keys, tokens, secrets, IMEIs, coordinates, and the path and the query of a receiver's URL have no
 * place in it: who reads traces may be somebody else than who reads the data. The first names are those of the semantic
 * conventions of OpenTelemetry.
 */
export interface SpanAttributes {
  readonly 'http.request.method'?: string;
  /** The pattern, with `:imei` in place of an IMEI. */
  readonly 'http.route'?: string;
  readonly 'http.response.status_code'?: number;
  readonly 'error.type'?: string;
  readonly 'db.system.name'?: 'postgresql' | 'redis';
  readonly 'server.address'?: string;
  readonly 'server.port'?: number;
  readonly 'fleet.account.id'?: number;
  readonly 'fleet.points'?: number;
  readonly 'fleet.events'?: number;
  readonly 'fleet.webhook.id'?: number;
  readonly 'fleet.event.id'?: string;
  readonly 'fleet.delivery.id'?: string;
  readonly 'fleet.delivery.attempt'?: number;
}

/** A span that is recorded. Where none is, there is null, so what is not recorded costs nothing. */
export interface Span {
  /** Names it to others, as the header `traceparent` does (W3C Trace Context). */
  readonly traceparent: string;
  /** Begins a part of it. */
  child(name: string, attributes?: SpanAttributes): Span;
  /** The same for parts that follow each other: the one before ends. */
  step(name: string, attributes?: SpanAttributes): Span;
  set(attributes: SpanAttributes): void;
  /** What it is about has failed. `type` is a code, never a message. */
  fail(type: string): void;
  /** Ends it with its step. Further calls do nothing. */
  end(): void;
}

export const IN_POSTGRES: SpanAttributes = { 'db.system.name': 'postgresql' };
export const IN_REDIS: SpanAttributes = { 'db.system.name': 'redis' };

/** The same promise; the span ends with it. */
export function endingWith<T>(promise: Promise<T>, span: Span): Promise<T> {
  return promise.finally(() => span.end());
}

/** A code for an error: what it says may be a secret. */
export function errorType(error: unknown): string {
  if (!(error instanceof Error)) return 'unknown';
  return 'code' in error && typeof error.code === 'string' ? error.code : error.name;
}

/** What is done for several at once is a part of each. Null without any. */
export function together(spans: readonly Span[]): Span | null {
  const [first, ...others] = spans;
  if (first === undefined) return null;
  return others.length === 0 ? first : new SpanGroup(spans);
}

class SpanGroup implements Span {
  readonly #spans: readonly Span[];

  constructor(spans: readonly Span[]) {
    this.#spans = spans;
  }

  get traceparent(): string {
    return (this.#spans[0] as Span).traceparent;
  }

  child(name: string, attributes?: SpanAttributes): Span {
    return new SpanGroup(this.#spans.map((span) => span.child(name, attributes)));
  }

  step(name: string, attributes?: SpanAttributes): Span {
    return new SpanGroup(this.#spans.map((span) => span.step(name, attributes)));
  }

  set(attributes: SpanAttributes): void {
    for (const span of this.#spans) span.set(attributes);
  }

  fail(type: string): void {
    for (const span of this.#spans) span.fail(type);
  }

  end(): void {
    for (const span of this.#spans) span.end();
  }
}
