import assert from 'node:assert/strict';
import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { describe, type TestContext, test } from 'node:test';
import { createServer as createTlsServer } from 'node:tls';
import { promisify } from 'node:util';
import { deliveryHeaders } from '../../src/webhooks/delivery.ts';
import { accepts, findFreePort } from '../support/ports.ts';
import { waitFor } from '../support/waitFor.ts';
import { trustedCertificate } from '../support/webhooks/receiver.ts';
import { webhookSetup } from '../support/webhooks/webhookSetup.ts';
import { endpointBody } from '../support/webhooks/webhooks.ts';
import { guideBlock } from './guide.ts';
import { findProgram } from './programs.ts';

// The receivers of the guide, as they stand there, run by their own interpreters.

const SECRET = 'whsec_MDEyMzQ1Njc4OWFiY2RlZjAxMjM0NTY3ODlhYmNkZWY=';

interface Language {
  readonly name: string;
  readonly file: string;
  /** What must be installed; null: this process is it. */
  readonly program: string | null;
  /** How the file becomes a command line; `port` for an interpreter that listens itself. */
  command(file: string, port: number): Promise<readonly [program: string, ...args: string[]]>;
}

const LANGUAGES: readonly Language[] = [
  {
    name: 'TypeScript',
    file: 'receiver.ts',
    program: null,
    command: async (file) => [process.execPath, file],
  },
  {
    name: 'Python',
    file: 'receiver.py',
    program: 'python3',
    command: async (file) => ['python3', file],
  },
  {
    name: 'Go',
    file: 'receiver.go',
    program: 'go',
    command: async (file) => {
      await promisify(execFile)('go', ['build', '-o', `${file}.out`, file], { cwd: join(file, '..') });
      return [`${file}.out`];
    },
  },
  {
    name: 'PHP',
    file: 'receiver.php',
    program: 'php',
    command: async (file, port) => ['php', '-S', `127.0.0.1:${port}`, file],
  },
];

/** A receiver that runs, and the ids of events that it says it has handled. */
interface Running {
  readonly port: number;
  readonly handled: string[];
}

async function start(t: TestContext, language: Language, secret: string): Promise<Running> {
  const folder = await mkdtemp(join(tmpdir(), 'fleet-receiver-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const file = join(folder, language.file);
  await writeFile(file, guideBlock(language.file));
  await mkdir(join(folder, 'events'));
  const port = await findFreePort();
  const [program, ...args] = await language.command(file, port);
  const child: ChildProcess = spawn(program, args, {
    cwd: folder,
    stdio: ['ignore', 'pipe', 'pipe'],
    env: {
      ...process.env,
      WEBHOOK_SECRET: secret,
      PORT: String(port),
      EVENTS_DIR: join(folder, 'events'),
    },
  });
  t.after(async () => {
    child.kill('SIGKILL');
    if (child.exitCode === null && child.signalCode === null) await once(child, 'exit');
  });
  const handled: string[] = [];
  const said: string[] = [];
  for (const stream of [child.stdout, child.stderr]) {
    if (stream === null) continue;
    createInterface(stream).on('line', (line) => {
      said.push(line);
      const id = /handled (evt_\w+)/.exec(line)?.[1];
      if (id !== undefined) handled.push(id);
    });
  }
  await waitFor(() => {
    assert.equal(child.exitCode, null, said.join('\n'));
    return accepts(port);
  });
  return { port, handled };
}

const EVENT_ID = 'evt_00112233445566778899aabbccddeeff';
const LATER_ID = 'evt_ffeeddccbbaa99887766554433221100';
/** Spelled as no serializer would spell it again, so that only who verifies the raw bytes can verify it. */
const BODY = `{"id":"${EVENT_ID}",  "type":"alarm","created_at":"2026-01-01T00:00:00Z","data":{"alarm":"s\\u006fs","name":"Würzburg €","n":1.50}}`;
const LATER_BODY = BODY.replace(EVENT_ID, LATER_ID);

/** The headers that the service sends with a body. */
const headersOf = (body: string, secret = SECRET) =>
  deliveryHeaders({
    endpointId: 7,
    eventId: EVENT_ID,
    deliveryId: 'dlv_00112233445566778899aabbccddeeff',
    attempt: 1,
    body,
    secret,
    previousSecret: null,
    nowMs: Date.parse('2026-01-01T00:00:01Z'),
  });
const signatureOf = (body: string, secret = SECRET) =>
  headersOf(body, secret)['X-Service-Signature'] as string;

const GOOD = signatureOf(BODY);
const TAMPERED = `${GOOD.slice(0, -1)}${GOOD.endsWith('0') ? '1' : '0'}`;

const REJECTED: readonly [what: string, body: string, signature: string | null][] = [
  ['a tampered body', BODY.replace('sos', 'sop').replace('1.50', '1.51'), GOOD],
  ['a body that lost its last byte', BODY.slice(0, -1), GOOD],
  ['the same JSON, serialized again', JSON.stringify(JSON.parse(BODY)), GOOD],
  ['no body', '', GOOD],
  ['a tampered signature', BODY, TAMPERED],
  ['a signature that lost its last digit', BODY, GOOD.slice(0, -1)],
  ['half a signature', BODY, GOOD.slice(0, 39)],
  ['a signature with more behind it', BODY, `${GOOD}00`],
  ['no signature', BODY, null],
  ['an empty signature', BODY, ''],
  ['the prefix alone', BODY, 'sha256='],
  ['the digits without their prefix', BODY, GOOD.slice('sha256='.length)],
  ['a signature that is no text of ours', BODY, 'sha256=Ã¼Ã¼'],
  ['the signature of another secret', BODY, signatureOf(BODY, SECRET.replace('MDEy', 'MDEz'))],
];

async function post({ port }: Running, body: string, signature: string | null): Promise<number> {
  const headers = headersOf(BODY);
  delete headers['X-Service-Signature'];
  if (signature !== null) headers['X-Service-Signature'] = signature;
  const response = await fetch(`http://127.0.0.1:${port}/`, { method: 'POST', headers, body });
  await response.arrayBuffer();
  return response.status;
}

/** What ends TLS before a receiver: the service speaks nothing else. */
async function startTerminator(t: TestContext, port: number): Promise<string> {
  const { certificatePem: cert, privateKeyPem: key } = await trustedCertificate();
  const server = createTlsServer({ cert, key }, (outside) => {
    const inside = connect(port, '127.0.0.1');
    for (const socket of [outside, inside]) socket.on('error', () => undefined);
    outside.pipe(inside).pipe(outside);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  const address = server.address();
  return `https://127.0.0.1:${typeof address === 'object' ? address?.port : 0}/`;
}

const setup = webhookSetup(60_000);

for (const language of LANGUAGES) {
  const { name, file, program } = language;
  const skip = program !== null && findProgram(program) === null && `there is no ${program} on this machine`;

  describe(`the receiver in ${name}`, { skip }, () => {
    test('takes what is signed, once, and what the service sends, and answers 401 to everything else', async (t) => {
      const running = await start(t, language, SECRET);
      const statuses: [string, number][] = [];
      for (const [what, body, signature] of REJECTED) {
        statuses.push([what, await post(running, body, signature)]);
      }
      assert.deepEqual(
        statuses,
        REJECTED.map(([what]) => [what, 401]),
      );
      const taken: number[] = [];
      for (let n = 0; n < 3; n++) taken.push(await post(running, BODY, GOOD));
      assert.deepEqual(taken, [204, 204, 204]);
      // Events are handled in their order: once the later one is, the earlier will not be again.
      assert.equal(await post(running, LATER_BODY, signatureOf(LATER_BODY)), 204);
      await waitFor(() => running.handled.includes(LATER_ID));
      assert.deepEqual(running.handled, [EVENT_ID, LATER_ID]);

      const url = await startTerminator(t, running.port);
      const { id, secret } = await setup.api.make(endpointBody(url, { retry_policy: 'none' }));
      // With another secret than that of the endpoint everything is refused.
      await setup.api.ping(id);
      const [rejected] = await setup.api.deliveriesWhen(id, 1, ({ status }) => status === 'exhausted');
      assert.equal(rejected?.last_status_code, 401);
      assert.deepEqual(running.handled, [EVENT_ID, LATER_ID]);

      const genuine = await start(t, language, secret);
      await setup.api.change(id, { url: await startTerminator(t, genuine.port) });
      const ping = await setup.api.ping(id);
      await setup.pod.points([setup.source.point(), setup.source.point()]);
      const deliveries = await setup.api.deliveriesWhen(
        id,
        4,
        ({ id: deliveryId, status }) => status === (deliveryId === rejected?.id ? 'exhausted' : 'delivered'),
      );
      const sent = deliveries.filter(({ status }) => status === 'delivered').map(({ event_id }) => event_id);
      assert.ok(sent.includes(ping.event_id));
      await waitFor(() => genuine.handled.length >= sent.length);
      assert.deepEqual([...genuine.handled].sort(), [...sent].sort());
      await setup.api.call('DELETE', `/${id}`);
    });

    test('does not start, or answers nothing with 2xx, without a secret', async (t) => {
      const running = await start(t, language, '').catch(() => null);
      if (running !== null) assert.ok((await post(running, BODY, signatureOf(BODY, ''))) >= 400, file);
    });
  });
}
