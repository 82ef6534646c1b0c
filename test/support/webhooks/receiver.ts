import type { IncomingMessage, ServerResponse } from 'node:http';
import { createServer } from 'node:https';
import type { Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { getCACertificates, setDefaultCACertificates } from 'node:tls';
import { type SelfSignedCertificate, selfSignedCertificate } from '../../../src/cli/commands/webhook.ts';
import { DAY_MS } from '../../../src/lib/time.ts';
import { serve } from '../http/serve.ts';
import { checkDelivery } from './describedDelivery.ts';

const DRIP_EVERY_MS = 50;
const IN_FLIGHT_MAX_MS = 12_000;
/** Longer than senders keep a connection, so that they close it. */
const IDLE_MS = 120_000;
const CHUNK = Buffer.alloc(64 * 1024, 'x');

/** What a receiver does with a request: answers a status, when `after` has settled and with a body, or misbehaves. */
export type Behaviour =
  | number
  | 'hang'
  | 'drip'
  | 'reset'
  | 'endless'
  | { readonly status: number; readonly after?: Promise<unknown>; readonly body?: string };

/** A delivery as it came in. */
export interface Received {
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
  /** Numbers the connection over which it came. */
  readonly connection: number;
  /** By performance.now(): when it was complete, and when the answer was given. */
  readonly atMs: number;
  answeredAtMs: number;
  /** When the sender could know the answer, or had hung up. */
  endedAtMs: number;
}

/** A receiver over https on the loopback, as an owner of webhooks would run one. */
export interface Receiver {
  readonly url: string;
  readonly received: readonly Received[];
  /**
   * The most requests that were in flight at once, by path. Each counts for twelve seconds at most: who lives leaves
   * after ten, and a process that was stopped cannot hang up.
   */
  maxInFlight(path: string): number;
  /** Which requests were in flight at once, in words. */
  readonly overlaps: readonly string[];
  /** From now on, for requests to all paths or to one: one after the other, the last for ever. */
  behave(
    behaviours: readonly Behaviour[] | ((request: Received, n: number) => Behaviour),
    path?: string,
  ): void;
  /** Those to one path, in the order received. */
  to(path: string): Received[];
}

/** Makes this process trust a certificate for good, beside the well-known ones. */
let trusted: Promise<SelfSignedCertificate> | null = null;
export function trustedCertificate(): Promise<SelfSignedCertificate> {
  trusted ??= trustNewCertificate();
  return trusted;
}

async function trustNewCertificate(): Promise<SelfSignedCertificate> {
  const names = ['127.0.0.1', 'localhost'];
  const certificate = await selfSignedCertificate(names, Date.now() - DAY_MS, Date.now() + DAY_MS);
  setDefaultCACertificates([...getCACertificates('default'), certificate.certificatePem]);
  return certificate;
}

/**
 * Starts a receiver that this process trusts; it ends after the test. It answers 200 until the test says otherwise. A delivery
 * that is not as the description of the API says fails the test by an unhandled rejection.
 */
export async function startReceiver(t?: TestContext): Promise<Receiver & { close(): Promise<void> }> {
  const { certificatePem, privateKeyPem } = await trustedCertificate();
  const received: Received[] = [];
  const inFlight = new Map<string, { now: number; max: number; readonly open: Set<string> }>();
  const overlaps: string[] = [];
  const connections = new WeakMap<Socket, number>();
  let connectionCount = 0;
  const plans = new Map<string | undefined, (request: Received, n: number) => Behaviour>();
  const tls = { cert: certificatePem, key: privateKeyPem };
  const server = createServer({ ...tls, keepAliveTimeout: IDLE_MS }, (request, response) => {
    void receive(request, response);
  });
  const receive = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const path = request.url ?? '';
    const gauge = inFlight.get(path) ?? { now: 0, max: 0, open: new Set<string>() };
    inFlight.set(path, gauge);
    gauge.now++;
    gauge.max = Math.max(gauge.max, gauge.now);
    const { 'x-service-delivery-id': id, 'x-service-delivery-attempt': attempt } = request.headers;
    const named = `${id} attempt ${attempt} on port ${request.socket.remotePort} at ${new Date().toISOString()}`;
    for (const other of gauge.open) overlaps.push(`${named} beside ${other}`);
    gauge.open.add(named);
    let delivery: Received | null = null;
    let isOver = false;
    const end = (): void => {
      if (!isOver) gauge.now--;
      if (!isOver && delivery !== null) delivery.endedAtMs = performance.now();
      isOver = true;
      gauge.open.delete(named);
      clearTimeout(stale);
    };
    const stale = setTimeout(end, IN_FLIGHT_MAX_MS).unref();
    response.once('close', end);
    let body = '';
    try {
      for await (const chunk of request.setEncoding('utf8')) body += chunk;
    } catch {
      return; // the sender was killed: nothing was delivered
    }
    const headers = request.headers as Record<string, string>;
    checkDelivery(headers, body);
    const connection = connections.get(request.socket) ?? 0;
    const times = { atMs: performance.now(), answeredAtMs: Number.NaN, endedAtMs: Number.POSITIVE_INFINITY };
    delivery = { path, headers, body, connection, ...times };
    const n = received.filter((earlier) => earlier.path === path).length;
    received.push(delivery);
    const plan = plans.get(path) ?? plans.get(undefined);
    await act(plan?.(delivery, n) ?? 200, response, end);
    delivery.answeredAtMs = performance.now();
  };
  server.on('secureConnection', (socket) => connections.set(socket, ++connectionCount));
  server.on('tlsClientError', () => undefined); // senders cut on purpose
  const { port, close } = await serve(t, server);
  return {
    url: `https://127.0.0.1:${port}`,
    received,
    overlaps,
    close,
    maxInFlight: (path) => inFlight.get(path)?.max ?? 0,
    to: (path) => received.filter((delivery) => delivery.path === path),
    behave: (behaviours, path) => {
      let next = 0;
      plans.set(
        path,
        typeof behaviours === 'function'
          ? behaviours
          : () => behaviours[Math.min(next++, behaviours.length - 1)] ?? 200,
      );
    },
  };
}

/** `beforeAnswer` is called before the sender can know the answer. */
async function act(behaviour: Behaviour, response: ServerResponse, beforeAnswer: () => void): Promise<void> {
  response.on('error', () => undefined); // cut by the sender on purpose
  if (typeof behaviour === 'number') {
    beforeAnswer();
    response
      .writeHead(behaviour, behaviour >= 300 && behaviour < 400 ? { Location: '/elsewhere' } : {})
      .end();
    return;
  }
  if (typeof behaviour === 'object') {
    await behaviour.after;
    beforeAnswer();
    response.writeHead(behaviour.status).end(behaviour.body);
    return;
  }
  switch (behaviour) {
    case 'hang':
      return;
    case 'reset':
      response.socket?.destroy();
      return;
    case 'drip': {
      response.writeHead(200);
      const timer = setInterval(() => response.write('.'), DRIP_EVERY_MS);
      response.once('close', () => clearInterval(timer));
      return;
    }
    case 'endless': {
      response.writeHead(200);
      const pour = (): void => {
        while (!response.destroyed && response.write(CHUNK));
      };
      response.on('drain', pour);
      pour();
    }
  }
}
