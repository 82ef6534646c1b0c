import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import type { RequestListener } from 'node:http';
import { createServer } from 'node:https';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type SelfSignedCertificate, selfSignedCertificate } from '../../src/cli/commands/webhook.ts';
import { DAY_MS } from '../../src/lib/time.ts';
import { listen } from './listen.ts';

/** Deliveries to paths below this one are answered at once. Only they count. */
export const HEALTHY_PATH = '/healthy/';
/** Deliveries to these are never answered. All others are answered late. */
export const HANGING_PATH = '/hanging/';

/** Starts a webhook receiver, which runs until the process ends. Returns its address. */
export async function openReceiver(
  { certificatePem, privateKeyPem }: SelfSignedCertificate,
  receive: RequestListener,
): Promise<string> {
  const server = createServer({ cert: certificatePem, key: privateKeyPem }, receive);
  // Senders close the connection when a request times out.
  server.on('tlsClientError', () => undefined);
  return `https://127.0.0.1:${await listen(server)}`;
}

/** Makes a certificate for receivers. Every process that is started before it is disposed of trusts it. */
export async function trustReceivers(): Promise<AsyncDisposable & { certificate: SelfSignedCertificate }> {
  const folder = await mkdtemp(join(tmpdir(), 'fleet-receivers-'));
  const certificate = await selfSignedCertificate(['127.0.0.1'], Date.now() - DAY_MS, Date.now() + DAY_MS);
  const file = join(folder, 'receivers.pem');
  await writeFile(file, certificate.certificatePem);
  // Node reads it when a process starts. The pods inherit it.
  process.env['NODE_EXTRA_CA_CERTS'] = file;
  return {
    certificate,
    [Symbol.asyncDispose]: async () => {
      delete process.env['NODE_EXTRA_CA_CERTS'];
      await rm(folder, { recursive: true });
    },
  };
}
