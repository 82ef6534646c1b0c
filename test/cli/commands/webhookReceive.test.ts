import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { text } from 'node:stream/consumers';
import { describe, type TestContext, test } from 'node:test';
import { newSecret } from '../../../src/delivery/secretBox.ts';
import { childEnv } from '../../support/childEnv.ts';
import { adminOf } from '../../support/postgres/admin.ts';
import { makeDataDir, removeDataDir } from '../../support/postgres/cluster.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';
import { serviceEnv, startProcess } from '../../support/service.ts';
import { waitFor } from '../../support/waitFor.ts';
import { endpointBody, webhookApi } from '../../support/webhooks/webhooks.ts';

const FLEET = join(import.meta.dirname, '..', '..', '..', 'src', 'cli', 'fleet.ts');

/** The command in a process of its own, with a folder for its certificate. */
function start(t: TestContext, dataDir: string, ...argv: string[]) {
  const child = spawn(process.execPath, [FLEET, 'webhook:receive', ...argv], {
    env: childEnv({ DATA_DIR: dataDir }),
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  t.after(() => child.kill('SIGKILL'));
  const lines: string[] = [];
  createInterface(child.stderr).on('line', (line) => lines.push(line));
  const stdout = text(child.stdout);
  const ended = new Promise<number | null>((resolve) => child.once('close', (code) => resolve(code)));
  const said = async (pattern: RegExp): Promise<RegExpExecArray> => {
    let found: RegExpExecArray | null = null;
    await waitFor(() => {
      found = lines.map((line) => pattern.exec(line)).find((match) => match !== null) ?? null;
      if (child.exitCode !== null && found === null) throw new Error(lines.join('\n'));
      return found !== null;
    });
    return found as unknown as RegExpExecArray;
  };
  const interrupt = async () => {
    child.kill('SIGINT');
    return { code: await ended, counts: JSON.parse(await stdout) };
  };
  return { lines, said, interrupt, ended };
}

const shown = (lines: readonly string[]) =>
  lines.filter((line) => line.startsWith('{')).map((line) => JSON.parse(line));

describe('webhook:receive', { timeout: 60_000 }, () => {
  test('a service started as it says delivers to it; with the secret it verifies, with a wrong one it refuses', async (t) => {
    const dataDir = await makeDataDir();
    t.after(() => removeDataDir(dataDir));
    const first = start(t, dataDir, '--port', '0');
    const [, url = ''] = await first.said(/^receiving at (\S+)$/);
    const [, file = '', nets = ''] = await first.said(
      /NODE_EXTRA_CA_CERTS='(.+)' WEBHOOK_ALLOW_NETS=(\S+) npm start$/,
    );

    const database = await createDatabase(t);
    const admin = adminOf(database.url);
    await admin.account('owner@example.com');
    const service = startProcess(t, {
      ...serviceEnv(database.url),
      NODE_EXTRA_CA_CERTS: file,
      WEBHOOK_ALLOW_NETS: nets,
    });
    const api = webhookApi((await service.listening).api, (await admin.key('owner@example.com')).key);
    const { id, secret } = await api.make(endpointBody(url, { retry_policy: 'none' }));
    const ping = await api.ping(id);
    await api.deliveriesWhen(id, 1, ({ status }) => status === 'delivered');
    const [unchecked] = shown(first.lines);
    assert.deepEqual(
      [unchecked.delivery_id, unchecked.attempt, unchecked.signature],
      [ping.id, 1, 'unchecked'],
    );
    assert.deepEqual([unchecked.body.type, unchecked.body.id], ['ping', ping.event_id]);
    assert.deepEqual(await first.interrupt(), { code: 0, counts: { received: 1, valid: 0, invalid: 0 } });

    // The same certificate: the service goes on trusting it.
    const port = new URL(url).port;
    const second = start(t, dataDir, '--port', port, '--secret', secret);
    await second.said(/^receiving at/);
    await api.ping(id);
    await api.deliveriesWhen(id, 2, ({ status }) => status === 'delivered');
    assert.equal(shown(second.lines)[0].signature, 'valid');
    assert.deepEqual((await second.interrupt()).counts, { received: 1, valid: 1, invalid: 0 });

    const third = start(t, dataDir, '--port', port, '--secret', newSecret());
    await third.said(/^receiving at/);
    const rejected = await api.ping(id);
    const deliveries = await api.deliveriesWhen(
      id,
      3,
      (each) => each.status === (each.id === rejected.id ? 'exhausted' : 'delivered'),
    );
    assert.equal(deliveries.find((each) => each.id === rejected.id)?.last_status_code, 401);
    assert.deepEqual((await third.interrupt()).counts, { received: 1, valid: 0, invalid: 1 });
  });

  test('says what is wrong with the port or the secret', async (t) => {
    const dataDir = await makeDataDir();
    t.after(() => removeDataDir(dataDir));
    const taken = createServer();
    await new Promise<void>((resolve) => taken.listen(0, '127.0.0.1', resolve));
    t.after(() => taken.close());
    const { port } = taken.address() as { port: number };
    for (const [argv, code, message] of [
      [['--port', String(port)], 1, /the port is taken/],
      [['--port', '70000'], 2, /--port must be/],
      [[], 2, /--port is missing/],
      [['--port', '0', '--secret', 'x'], 2, /--secret must be a signing secret/],
    ] as const) {
      const run = start(t, dataDir, ...argv);
      assert.equal(await run.ended, code);
      assert.match(run.lines.join('\n'), message);
    }
  });
});
