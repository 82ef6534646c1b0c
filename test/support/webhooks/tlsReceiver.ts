import assert from 'node:assert/strict';
import { type AddressInfo, createServer, type Server, type Socket } from 'node:net';
import type { TestContext } from 'node:test';
import { createServer as createTlsServer, type TLSSocket } from 'node:tls';
import { type SelfSignedCertificate, selfSignedCertificate } from '../../../src/cli/commands/webhook.ts';
import { DAY_MS } from '../../../src/lib/time.ts';
import type { Resolve, SendResult } from '../../../src/webhooks/delivery/sendWebhook.ts';

export const RECEIVER_NAME = 'hook.example.com';

/** A certificate of the receivers below, valid today under their name and the loopback. */
export function receiverCertificate(
  names: readonly string[] = [RECEIVER_NAME, '127.0.0.1', '::1', 'localhost'],
) {
  return selfSignedCertificate(names, Date.now() - DAY_MS, Date.now() + DAY_MS);
}

/** A TLS server that records what it is sent. */
export interface TlsReceiver {
  readonly port: number;
  /** Connections opened so far, by TCP's count. */
  readonly connections: () => number;
  /** Requests received in full, head and body as sent. */
  readonly requests: readonly string[];
}

/** Starts one for the length of a test; `answer` is called with each request that has come in full. */
export async function startTlsReceiver(
  t: TestContext,
  certificate: SelfSignedCertificate,
  answer: (socket: TLSSocket) => void,
  host = '127.0.0.1',
): Promise<TlsReceiver> {
  const requests: string[] = [];
  const server = createTlsServer({ cert: certificate.certificatePem, key: certificate.privateKeyPem });
  server.on('secureConnection', (socket) => {
    let text = '';
    socket.on('error', () => undefined); // clients cut and refuse on purpose
    socket.setEncoding('latin1').on('data', (chunk: string) => {
      text += chunk;
      if (!isComplete(text)) return;
      requests.push(text);
      text = '';
      answer(socket);
    });
  });
  server.on('tlsClientError', () => undefined); // likewise
  return { ...(await listen(t, server, host)), requests };
}

/** A TCP server that counts connections and hands them over. */
export async function startListener(
  t: TestContext,
  onSocket: (socket: Socket) => void = () => undefined,
  host = '127.0.0.1',
): Promise<{ readonly port: number; readonly connections: () => number }> {
  return await listen(t, createServer(onSocket), host);
}

async function listen(t: TestContext, server: Server, host: string) {
  let connections = 0;
  const open = new Set<Socket>();
  server.on('connection', (socket: Socket) => {
    connections++;
    open.add(socket);
    socket.on('error', () => undefined);
    socket.on('close', () => open.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(0, host, resolve);
  });
  t.after(async () => {
    for (const socket of open) socket.destroy();
    await new Promise((resolve) => server.close(resolve));
  });
  const address = server.address() as AddressInfo;
  return { port: address.port, connections: () => connections };
}

function isComplete(text: string): boolean {
  const head = text.indexOf('\r\n\r\n');
  if (head < 0) return false;
  const length = /content-length: (\d+)/i.exec(text.slice(0, head))?.[1];
  assert.ok(length !== undefined, 'a delivery says how long it is');
  return text.length - head - 4 === Number(length);
}

/** A resolver that answers these addresses. */
export const answering =
  (...addresses: string[]): Resolve =>
  async () => ({ kind: 'addresses', addresses });

/** What an attempt came to, without its duration. */
export async function outcomeOf(sending: Promise<SendResult>): Promise<string> {
  const result = await sending;
  if (result.kind === 'answered') return String(result.statusCode);
  return result.kind === 'failed' ? result.error : result.kind;
}
