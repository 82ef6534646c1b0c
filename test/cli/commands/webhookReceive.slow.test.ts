import assert from 'node:assert/strict';
import { createServer } from 'node:net';
import { describe, test } from 'node:test';
import { newSecret } from '../../../src/webhooks/delivery.ts';
import { adminOf } from '../../support/postgres/admin.ts';
import { makeDataDir, removeDataDir } from '../../support/postgres/cluster.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';
import { serviceEnv, startProcess } from '../../support/service.ts';
import { deliveriesIn, startWebhookReceive } from '../../support/webhooks/webhookReceive.ts';
import { endpointBody, webhookApi } from '../../support/webhooks/webhooks.ts';
import { runFleet } from '../runFleet.ts';

describe('webhook:receive', () => {
  test('a service started as it says delivers to it; with the secret it verifies, with a wrong one it refuses', async (t) => {
    const dataDir = await makeDataDir();
    t.after(() => removeDataDir(dataDir));
    const first = startWebhookReceive(t, dataDir, '--port', '0');
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
    const [unchecked] = deliveriesIn(first.lines);
    assert.deepEqual(
      [unchecked.delivery_id, unchecked.attempt, unchecked.signature],
      [ping.id, 1, 'unchecked'],
    );
    assert.deepEqual([unchecked.body.type, unchecked.body.id], ['ping', ping.event_id]);
    assert.deepEqual(await first.interrupt(), { code: 0, counts: { received: 1, valid: 0, invalid: 0 } });

    // The certificate is the same, so the service still trusts it.
    const port = new URL(url).port;
    const second = startWebhookReceive(t, dataDir, '--port', port, '--secret', secret);
    await second.said(/^receiving at/);
    await api.ping(id);
    await api.deliveriesWhen(id, 2, ({ status }) => status === 'delivered');
    assert.equal(deliveriesIn(second.lines)[0].signature, 'valid');
    assert.deepEqual((await second.interrupt()).counts, { received: 1, valid: 1, invalid: 0 });

    const third = startWebhookReceive(t, dataDir, '--port', port, '--secret', newSecret());
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
    const env = { DATA_DIR: dataDir };
    for (const [argv, code, message] of [
      [['--port', String(port)], 1, /the port is taken/],
      [['--port', '70000'], 2, /--port must be/],
      [[], 2, /--port is missing/],
      [['--port', '0', '--secret', 'x'], 2, /--secret must be a signing secret/],
    ] as const) {
      const run = await runFleet('postgres://127.0.0.1:1/x', ['webhook:receive', ...argv], { env });
      assert.equal(run.code, code);
      assert.match(run.stderr, message);
    }
  });
});
