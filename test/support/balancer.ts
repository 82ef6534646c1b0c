import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http';
import { buffer } from 'node:stream/consumers';
import type { TestContext } from 'node:test';
import { serve } from './http/serve.ts';

const CHECK_EVERY_MS = 250;
/** Longer than callers keep a connection, so that they close it. */
const IDLE_MS = 120_000;

/** A balancer of calls as docs/operations.md asks for one: a new pod gets none before its /readyz is 200. */
export interface Balancer {
  readonly url: string;
  /** Adds a pod by one of its addresses. It is taken out when nobody listens there any more. */
  add(pod: string): void;
  /** How many pods get calls. */
  readonly ready: number;
}

/**
 * Starts one that gives calls to its pods in turn, each over a connection of its own; it ends after the test. As
 * deploy/haproxy/haproxy.cfg has it, another pod gets a call that one has not answered at all: reads, and with `repeatsAll`,
 * for points, every call.
 */
export async function startBalancer(t: TestContext, repeatsAll = false): Promise<Balancer> {
  const pods = new Map<string, boolean>();
  let turn = 0;
  const check = async (pod: string): Promise<void> => {
    try {
      const { ok } = await fetch(`${pod}/readyz`, { headers: { Connection: 'close' } });
      if (pods.has(pod)) pods.set(pod, ok);
    } catch {
      if (pods.get(pod) === true) pods.delete(pod);
    }
  };
  const readyPods = (): string[] => [...pods].filter(([, isReady]) => isReady).map(([pod]) => pod);
  const server = createServer({ keepAliveTimeout: IDLE_MS }, async (call, answer) => {
    const ready = readyPods();
    const first = turn++ % Math.max(ready.length, 1);
    const body = await buffer(call);
    for (const pod of [...ready.slice(first), ...ready.slice(0, first)]) {
      const passed = await pass(pod, call, body, answer).catch((error: NodeJS.ErrnoException) => error);
      if (passed === true) return;
      // Only a pod that does not listen has certainly not begun with the call.
      const mayRepeat = repeatsAll || call.method === 'GET';
      if (passed.code !== 'ECONNREFUSED' && (!mayRepeat || answer.headersSent)) break;
    }
    answer.destroy();
  });
  const { url } = await serve(t, server);
  const timer = setInterval(() => {
    for (const pod of pods.keys()) void check(pod);
  }, CHECK_EVERY_MS);
  t.after(() => clearInterval(timer));
  return {
    url,
    add: (pod) => void pods.set(pod, false),
    get ready() {
      return readyPods().length;
    },
  };
}

/** Passes a call to a pod, and its answer back. Rejects when there is none. */
function pass(pod: string, call: IncomingMessage, body: Buffer, answer: ServerResponse): Promise<true> {
  return new Promise((resolve, reject) => {
    const { method, url = '/' } = call;
    const headers = { ...call.headers, connection: 'close' };
    const upstream = request(new URL(url, pod), { method, headers, agent: false }, (reply) => {
      const { connection: _, ...rest } = reply.headers;
      answer.writeHead(reply.statusCode ?? 502, rest);
      reply.pipe(answer);
      reply.once('end', () => resolve(true)).once('error', reject);
    });
    upstream.once('error', reject);
    upstream.end(body);
  });
}
