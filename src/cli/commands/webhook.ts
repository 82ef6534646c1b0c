import { createHmac, timingSafeEqual, X509Certificate } from 'node:crypto';
import { once } from 'node:events';
import { mkdir, writeFile } from 'node:fs/promises';
import type { IncomingMessage } from 'node:http';
import { type AddressInfo, isIP } from 'node:net';
import { join, resolve } from 'node:path';
import { parseJson } from '../../lib/parseText.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { DAY_MS } from '../../lib/time.ts';
import { readIfThere } from '../../postgres/embedded/dataFolder.ts';
import { SECRET_PREFIX } from '../../webhooks/delivery.ts';
import { type ListedWebhook, selectWebhookPage } from '../../webhooks/webhooks.sql.ts';
import type { FleetCommand } from '../command.ts';
import { defineCommand, optional, PAGE_ROWS, printPages, required, withAccount } from '../command.ts';
import { parseEmail, parseWhole } from '../optionParsers.ts';

const PORT_MAX = 65_535;

const receive = defineCommand({
  name: 'webhook:receive',
  summary: 'Receives webhooks on this machine over https and prints them, to try them out.',
  options: {
    port: required('P', 'to listen on; 0 takes a free one', (text) => parseWhole(text, 0, PORT_MAX)),
    secret: optional('S', 'of the endpoint; signatures are verified with it', parseSecret),
  },
  notes: [
    'Its certificate is made once and kept in DATA_DIR. It says how to start the service so that it trusts and',
    'reaches the receiver, and prints a JSON line for each delivery. Ctrl-C ends it with a count of them.',
  ],
  async run({ config, say, interrupted, nowMs }, { port, secret }) {
    const counts = { received: 0, valid: 0, invalid: 0 };
    const { file, certificate } = await receiverCertificate(config.dataDir, nowMs());
    const receiver = await receiveWebhooks(port, certificate, secret, (webhook) => {
      counts.received++;
      if (webhook.signature !== 'unchecked') counts[webhook.signature]++;
      say(JSON.stringify(webhook));
    });
    if (!receiver.ok) return receiver;
    for (const line of instructions(receiver.value.url, file, secret !== undefined)) say(line);
    if (!interrupted.aborted) await once(interrupted, 'abort');
    await receiver.value.close();
    return ok(counts);
  },
});

const list = defineCommand({
  name: 'webhook:list',
  summary: 'Prints every webhook endpoint, one JSON line each.',
  options: { email: optional('E', 'only those of this account', parseEmail) },
  run: (context, { email }) =>
    withAccount(context, email, (sql, account) =>
      printPages(context, (last: ListedWebhook | null) =>
        selectWebhookPage(sql, account?.id ?? null, last?.id ?? 0, PAGE_ROWS),
      ),
    ),
});

export const webhookCommands: readonly FleetCommand[] = [receive, list];

function instructions(url: string, certificateFile: string, isVerifying: boolean): string[] {
  return [
    `receiving at ${url}`,
    'Start the service so that it trusts and reaches it:',
    `  NODE_EXTRA_CA_CERTS='${certificateFile}' WEBHOOK_ALLOW_NETS=127.0.0.0/8 npm start`,
    'Create an endpoint with a key that has manage_webhooks, and test it:',
    `  curl -X POST http://127.0.0.1:3000/api/webhooks -H "X-API-Key: $KEY" -H 'Content-Type: application/json' \\`,
    `    -d '{"url":"${url}","events":["*"]}'`,
    '  curl -X POST http://127.0.0.1:3000/api/webhooks/ID/test -H "X-API-Key: $KEY"',
    ...(isVerifying
      ? []
      : ['To verify signatures, end this and start it again with --secret, as the creation showed it.']),
  ];
}

function parseSecret(text: string): Result<string, string> {
  return text.startsWith(SECRET_PREFIX) ? ok(text) : fail(`must be a signing secret, ${SECRET_PREFIX}…`);
}

const NAMES = ['127.0.0.1', 'localhost'];
const VALID_DAYS = 365;
/** A certificate that ends sooner is replaced. */
const SPARE_DAYS = 1;

/**
 * The certificate of the local webhook receiver, kept in `dataDir` so that a service which trusts it needs no restart
 * when the receiver does. `file` is the certificate alone, as an absolute path.
 */
async function receiverCertificate(
  dataDir: string,
  nowMs: number,
): Promise<{ readonly file: string; readonly certificate: SelfSignedCertificate }> {
  const folder = resolve(dataDir);
  const file = join(folder, 'webhook-receiver.pem');
  const keyFile = join(folder, 'webhook-receiver-key.pem');
  const [certificatePem, privateKeyPem] = await Promise.all([readIfThere(file), readIfThere(keyFile)]);
  if (
    certificatePem !== null &&
    privateKeyPem !== null &&
    endsMs(certificatePem) > nowMs + SPARE_DAYS * DAY_MS
  ) {
    return { file, certificate: { certificatePem, privateKeyPem } };
  }
  const certificate = await selfSignedCertificate(NAMES, nowMs - DAY_MS, nowMs + VALID_DAYS * DAY_MS);
  await mkdir(folder, { recursive: true });
  await writeFile(keyFile, certificate.privateKeyPem, { mode: 0o600 });
  await writeFile(file, certificate.certificatePem);
  return { file, certificate };
}

function endsMs(certificatePem: string): number {
  return new X509Certificate(certificatePem).validToDate.getTime();
}

/** A delivery as it is shown. */
interface ReceivedWebhook {
  readonly delivery_id: string | null;
  readonly attempt: number | null;
  readonly signature: 'valid' | 'invalid' | 'unchecked';
  /** The parsed JSON, or the text if it is not JSON. */
  readonly body: unknown;
}

const HOST = '127.0.0.1';
const MAX_BODY_BYTES = 1024 * 1024;

/**
 * A receiver of webhooks on the loopback, as the API document wants one: verifies the raw body in constant time,
 * answers 401 to a wrong signature, 200 to everything else. Without a secret (`whsec_…`) no signature is verified. The
 * error says which port to choose instead.
 */
async function receiveWebhooks(
  port: number,
  { certificatePem: cert, privateKeyPem: key }: SelfSignedCertificate,
  secret: string | undefined,
  onReceived: (webhook: ReceivedWebhook) => void,
): Promise<Result<{ readonly url: string; close(): Promise<void> }, string>> {
  const { createServer } = await import('node:https'); // loaded only here: other commands need not wait for it
  const server = createServer({ cert, key }, (request, response) => {
    readBody(request).then(
      (body) => {
        if (body === null) return response.writeHead(413, { Connection: 'close' }).end();
        const webhook = describe(request, body, secret);
        onReceived(webhook);
        return response.writeHead(webhook.signature === 'invalid' ? 401 : 200).end();
      },
      () => response.destroy(), // the sender went away
    );
  });
  server.listen(port, HOST);
  try {
    await once(server, 'listening');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'EADDRINUSE') return fail('the port is taken; choose another with --port');
    if (code === 'EACCES') return fail('this port needs privileges; choose one above 1023 with --port');
    throw error;
  }
  return ok({
    url: `https://${HOST}:${(server.address() as AddressInfo).port}/`,
    close: async () => {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  });
}

/** The raw body; null when it is larger than any delivery. */
async function readBody(request: IncomingMessage): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let bytes = 0;
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes > MAX_BODY_BYTES) return null;
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

function describe({ headers }: IncomingMessage, body: Buffer, secret: string | undefined): ReceivedWebhook {
  const header = (name: string) => headers[name]?.toString() ?? null;
  const attempt = header('x-service-delivery-attempt');
  const parsed = parseJson(body);
  return {
    delivery_id: header('x-service-delivery-id'),
    attempt: attempt === null ? null : Number(attempt),
    signature: secret === undefined ? 'unchecked' : check(header('x-service-signature') ?? '', body, secret),
    body: parsed.ok ? parsed.value : body.toString('utf8'),
  };
}

function check(signature: string, body: Buffer, secret: string): 'valid' | 'invalid' {
  const expected = Buffer.from(`sha256=${createHmac('sha256', secret).update(body).digest('hex')}`);
  const given = Buffer.from(signature);
  return given.length === expected.length && timingSafeEqual(given, expected) ? 'valid' : 'invalid';
}

export interface SelfSignedCertificate {
  readonly certificatePem: string;
  readonly privateKeyPem: string;
}

/**
 * A fresh P-256 key and a certificate that it signs itself, for a TLS server under all of `names`: host names and IP
 * addresses, at least one. It may sign no other certificate, so a client that trusts it trusts this server alone.
 */
export async function selfSignedCertificate(
  names: readonly string[],
  validFromMs: number,
  validToMs: number,
): Promise<SelfSignedCertificate> {
  // Loaded only here: it takes as long as all the other commands together.
  const { generate } = await import('selfsigned');
  const made = await generate([{ name: 'commonName', value: names[0] ?? '' }], {
    keyType: 'ec',
    curve: 'P-256',
    algorithm: 'sha256',
    notBeforeDate: new Date(validFromMs),
    notAfterDate: new Date(validToMs),
    extensions: [
      { name: 'basicConstraints', cA: false, critical: true },
      {
        name: 'subjectAltName',
        altNames: names.map((name) => (isIP(name) === 0 ? { type: 2, value: name } : { type: 7, ip: name })),
      },
    ],
  });
  return { certificatePem: made.cert, privateKeyPem: made.private };
}
