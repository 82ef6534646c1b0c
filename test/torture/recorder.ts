import { bareRequest } from '../support/pod.ts';
import type { RecordedCall } from './record.ts';
import type { SimulatedPod } from './site.ts';

/** A caller gives up then, and asks another pod. */
const PATIENCE_MS = 4_000;

/** What became of a call. */
export interface Asked {
  readonly what: string;
  readonly beginMs: number;
  readonly endMs: number;
  readonly process: number | null;
  readonly status: number | null;
  readonly code?: string;
  // biome-ignore lint/suspicious/noExplicitAny: answers of every shape
  readonly body: any;
  readonly text: string;
}

/** Asks a pod, and says what came of it; it never throws. */
export async function ask(
  pod: SimulatedPod,
  port: 'api' | 'ingest',
  path: string,
  init: RequestInit = {},
): Promise<Asked> {
  const { process } = pod;
  const what = `${init.method ?? 'GET'} ${path}`;
  const beginMs = performance.now();
  const url = `http://127.0.0.1:${pod.lines[port].port}${path}`;
  const reply = await bareRequest(url, { ...init, signal: AbortSignal.timeout(PATIENCE_MS) }).catch(
    () => null,
  );
  const endMs = performance.now();
  return {
    what,
    beginMs,
    endMs,
    process: pod.process === process ? process : null,
    status: reply?.status ?? null,
    ...(reply?.body?.error?.code !== undefined && { code: reply.body.error.code }),
    body: reply?.body,
    text: reply?.text ?? '',
  };
}

/** Runs something that is not a call of a pod, such as a command; what fails may have happened, or may happen yet. */
export async function attempt<T>(
  what: string,
  work: () => Promise<T>,
): Promise<Asked & { readonly value: T | null }> {
  const beginMs = performance.now();
  const limit = AbortSignal.timeout(PATIENCE_MS * 3);
  const value = await Promise.race([
    work().catch(() => null),
    new Promise<null>((resolve) => limit.addEventListener('abort', () => resolve(null))),
  ]);
  const status = value === null ? null : 200;
  return { what, beginMs, endMs: performance.now(), process: null, status, body: null, text: '', value };
}

/** What a call has in a record beside its kind. */
export function facts({ what, beginMs, endMs, process, status, code }: Asked) {
  return { what, beginMs, endMs, process, status, ...(code !== undefined && { code }) };
}

/** Writes down calls, in the order in which they end. */
export class Recorder {
  readonly calls: RecordedCall[] = [];
  #batches = 0;

  add(call: RecordedCall): void {
    this.calls.push(call);
  }

  nextBatch(): number {
    return ++this.#batches;
  }
}
