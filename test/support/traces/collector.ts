import type { IncomingHttpHeaders } from 'node:http';
import type { TestContext } from 'node:test';
import { serve } from '../http/serve.ts';
import { waitFor } from '../waitFor.ts';

/** A span as it came in. */
export interface CollectedSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  /** Empty for the first of a trace. */
  readonly parentSpanId: string;
  readonly kind: number;
  readonly attributes: Readonly<Record<string, string | number>>;
  readonly hasFailed: boolean;
  readonly startNs: bigint;
  readonly endNs: bigint;
  /** `service.name` and the others. */
  readonly resource: Readonly<Record<string, string | number>>;
}

/** A receiver of OTLP over HTTP, as a collector is one. */
export interface Collector {
  readonly url: string;
  readonly spans: readonly CollectedSpan[];
  /** What was sent, byte for byte. */
  readonly bodies: readonly string[];
  readonly headers: readonly IncomingHttpHeaders[];
  readonly paths: readonly string[];
  /** The spans of a trace once there are so many of the name. */
  traceWith(traceId: string, name: string, count?: number): Promise<readonly CollectedSpan[]>;
  /** From now on: a status, or no answer at all. */
  behave(behaviour: number | 'hang'): void;
}

interface WireSpan {
  readonly name: string;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId?: string;
  readonly kind: number;
  readonly startTimeUnixNano: string;
  readonly endTimeUnixNano: string;
  readonly attributes: readonly WireAttribute[];
  readonly status?: { readonly code?: number };
}

interface WireAttribute {
  readonly key: string;
  readonly value: { readonly stringValue?: string; readonly intValue?: number | string };
}

interface WireTraces {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: readonly WireAttribute[] };
    readonly scopeSpans: readonly { readonly spans: readonly WireSpan[] }[];
  }[];
}

/** `STATUS_CODE_ERROR` of OTLP. */
const ERROR = 2;

/** Starts one; it ends after the test. */
export async function startCollector(t?: TestContext): Promise<Collector & { close(): Promise<void> }> {
  const spans: CollectedSpan[] = [];
  const bodies: string[] = [];
  const headers: IncomingHttpHeaders[] = [];
  const paths: string[] = [];
  let behaviour: number | 'hang' = 200;
  const { url, close } = await serve(t, async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    bodies.push(body);
    headers.push(request.headers);
    paths.push(request.url ?? '');
    if (behaviour === 'hang') return;
    if (behaviour === 200) spans.push(...readSpans(JSON.parse(body) as WireTraces));
    response.writeHead(behaviour, { 'Content-Type': 'application/json' }).end('{}');
  });
  return {
    url,
    spans,
    bodies,
    headers,
    paths,
    close,
    behave: (next) => {
      behaviour = next;
    },
    traceWith: async (traceId, name, count = 1) => {
      const own = () => spans.filter((span) => span.traceId === traceId);
      await waitFor(() => own().filter((span) => span.name === name).length >= count);
      return own();
    },
  };
}

function readSpans({ resourceSpans }: WireTraces): CollectedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans
      .flatMap(({ spans }) => spans)
      .map((span) => ({
        name: span.name,
        traceId: span.traceId,
        spanId: span.spanId,
        parentSpanId: span.parentSpanId ?? '',
        kind: span.kind,
        attributes: valuesOf(span.attributes),
        hasFailed: span.status?.code === ERROR,
        startNs: BigInt(span.startTimeUnixNano),
        endNs: BigInt(span.endTimeUnixNano),
        resource: valuesOf(resource.attributes),
      })),
  );
}

function valuesOf(attributes: readonly WireAttribute[]): Record<string, string | number> {
  return Object.fromEntries(
    attributes.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]),
  );
}

/**
 * The tree of a trace in lines: each span under its parent, in the order of their names. Times do not order them, since spans
 * begin by the clocks of their machines, which are set now and then.
 */
export function treeOf(spans: readonly CollectedSpan[], parentSpanId: string, depth = 0): string[] {
  return spans
    .filter((span) => span.parentSpanId === parentSpanId)
    .toSorted((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((span) => [`${'  '.repeat(depth)}${span.name}`, ...treeOf(spans, span.spanId, depth + 1)]);
}
