import assert from 'node:assert/strict';
import { mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { DAY_MS } from '../../src/lib/time.ts';
import { openSql } from '../../src/postgres/sql.ts';
import { packPoints } from '../support/history/packPoints.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { databaseUrl } from '../support/postgres/cluster.ts';
import { waitFor } from '../support/waitFor.ts';
import { type Received, type Receiver, startReceiver } from '../support/webhooks/receiver.ts';
import { endpointBody, type WebhookApi, webhookApi, webhookEnv } from '../support/webhooks/webhooks.ts';
import { guideBlock } from './guide.ts';
import { paste } from './shell.ts';
import { findSystemPostgres, startSystemPostgres } from './systemPostgres.ts';

// Backup and restore as the guide says, by the programs of an installed Postgres, into another cluster.

const OWNER = 'owner@example.com';
const IMEI = '350000000000001';
const SHORT_MINUTE_MS = 200;
const DWELL_SECONDS = 600;
/** Circles of 500 m around it are areas; the other place is far away. */
const INSIDE = { latitude: 41.9, longitude: 12.5 };
const OUTSIDE = { latitude: 42.9, longitude: 12.5 };

const programs = findSystemPostgres();
const skip = programs === null && 'there is no installed Postgres with pg_dump on this machine';

interface Service {
  readonly pod: Pod;
  readonly api: WebhookApi;
  /** `data` of a route of v3. */
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape
  read(path: string): Promise<any>;
}

async function serve(t: TestContext, url: string, key: string, env = {}): Promise<Service> {
  const pod = await startPod(url, { t, env: webhookEnv(SHORT_MINUTE_MS, env) });
  return {
    pod,
    api: webhookApi(pod.api, key),
    read: async (path) => (await pod.get(`/api/v3${path}`, key)).body.data,
  };
}

const point = (recordedAtMs: number, place: object) => ({
  imei: IMEI,
  recorded_at: recordedAtMs,
  speed_kmh: 50,
  ...place,
});
const typed = (type: string) => (received: Received) => JSON.parse(received.body).type === type;

/** Runs the commands of a block, with the programs of the installed Postgres. */
async function run(t: TestContext, block: string, cwd: string, url: string): Promise<void> {
  const env = { PATH: [programs, process.env['PATH']].join(delimiter), DATABASE_URL: url };
  const shell = paste(t, block, cwd, env);
  assert.equal(await shell.ended, 0, shell.lines.join('\n'));
}

/** The service before the backup: a stay that goes on, a dwell that is not over, a delivery that waits. */
async function startSetup(t: TestContext) {
  const url = await startSystemPostgres(t);
  const admin = adminOf(url);
  await admin.run('migrate');
  await admin.account(OWNER);
  await admin.device(OWNER, IMEI);
  const { key } = await admin.key(OWNER);
  const receiver = await startReceiver(t);
  const before = await serve(t, url, key);
  const center = { lat: INSIDE.latitude, lng: INSIDE.longitude };
  for (const area of [{ name: 'Depot' }, { name: 'Rest', dwell_seconds: DWELL_SECONDS }]) {
    const { status } = await fetch(`${before.pod.api}/api/v3/areas`, {
      method: 'POST',
      headers: { 'X-API-Key': key, 'Content-Type': 'application/json' },
      body: JSON.stringify({ type: 'circle', center, radius_m: 500, ...area }),
    });
    assert.equal(status, 201);
  }
  const hook = await before.api.make(endpointBody(`${receiver.url}/hook`));
  receiver.behave([500], '/waiting');
  const waiting = await before.api.make(endpointBody(`${receiver.url}/waiting`, { max_retries: 10 }));
  const startMs = Date.now() - 3_600_000;
  await before.pod.points([point(startMs, OUTSIDE), point(startMs + 1_000, INSIDE)]);
  await before.api.deliveriesWhen(hook.id, 1, ({ status }) => status === 'delivered');
  await storePastDays(before.pod, url, startMs);
  return { url, key, receiver, before, hook, waiting, startMs };
}

/** Of five closed days: packed, and some that came late. */
async function storePastDays(pod: Pod, url: string, startMs: number): Promise<void> {
  const past = (count: number, shiftMs: number) =>
    Array.from({ length: count }, (_, n) =>
      point(startMs - 8 * DAY_MS + (n * 5 * DAY_MS) / count + shiftMs, {
        latitude: (n + 1) / 9,
        longitude: -n / 7,
      }),
    );
  await pod.points(past(400, 0));
  const sql = openSql(url, { maxConnections: 1, name: 'test packing' });
  assert.equal((await packPoints(sql)).points, 400);
  await sql.end();
  await pod.points(past(20, 1_234));
}

/** All that can be asked about the history, as texts. */
async function historyTexts(pod: Pod, key: string, startMs: number): Promise<string[]> {
  const window = `from=${new Date(startMs - 9 * DAY_MS).toISOString()}&to=${new Date(startMs + 1_000).toISOString()}`;
  const below = `/api/v3/devices/${IMEI}/history`;
  const { latitude: lat, longitude: lng } = INSIDE;
  const paths = [
    `${below}?limit=1000&${window}`,
    `${below}/export?format=csv&${window}`,
    `${below}/summary?by=day&${window}`,
    `/api/v3/presence?lat=${lat}&lng=${lng}&radius_m=100000&${window}`,
  ];
  return Promise.all(
    paths.map(async (path) => {
      const response = await fetch(`${pod.api}${path}`, { headers: { 'X-API-Key': key } });
      assert.equal(response.status, 200);
      return response.text();
    }),
  );
}

function idsAt(receiver: Receiver, path: string): string[] {
  return receiver.to(path).map(({ headers }) => headers['webhook-id'] as string);
}

test('what was in the backup goes on after the restore, and nothing of it twice', {
  skip,
}, async (t) => {
  const { url, key, receiver, before, hook, waiting, startMs } = await startSetup(t);
  const folder = await mkdtemp(join(tmpdir(), 'fleet-backup-'));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const history = await historyTexts(before.pod, key, startMs);
  await run(t, guideBlock('backup'), folder, url);

  // What comes after the backup is lost, but receivers have heard of it.
  await before.pod.points([point(startMs + 2_000, { ...INSIDE, rfid: 'lost' })]);
  await waitFor(() => receiver.to('/hook').some(typed('rfid')));
  await before.pod.stop();
  const heard = idsAt(receiver, '/hook');
  const lost = JSON.parse(receiver.to('/hook').find(typed('rfid'))?.body ?? '');

  const restoredUrl = await startSystemPostgres(t);
  await run(t, guideBlock('restore'), folder, restoredUrl);
  const { pod, api, read } = await serve(t, restoredUrl, key);

  await t.test('devices, history, areas, events and endpoints are there, for the same key', async () => {
    const page = await read(`/devices/${IMEI}/history?limit=1000`);
    assert.equal(page.length, 2 + 400 + 20, 'packed points, late ones and rows');
    assert.deepEqual(await historyTexts(pod, key, startMs), history);
    assert.equal((await read(`/devices/${IMEI}/location`)).latitude, INSIDE.latitude);
    assert.deepEqual(
      (await read('/areas')).map(({ name }: { name: string }) => name),
      ['Depot', 'Rest'],
    );
    assert.equal((await read('/events')).length, 1);
    assert.equal((await api.call('GET', '')).body.data.length, 2);
  });

  await t.test('a delivery that waited in the backup is sent', async () => {
    receiver.behave([200], '/waiting');
    await api.deliveriesWhen(waiting.id, 1, ({ status }) => status === 'delivered');
  });

  await t.test('stays and dwells go on; what happens now is no repetition to receivers', async () => {
    const sent = receiver.to('/hook').length;
    await pod.points([
      point(startMs + 2_000, INSIDE),
      point(startMs + 1_000 + DWELL_SECONDS * 1_000, INSIDE),
      point(startMs + 2_000 + DWELL_SECONDS * 1_000, OUTSIDE),
    ]);
    await waitFor(() => receiver.to('/hook').length >= sent + 3);
    const now = receiver
      .to('/hook')
      .slice(sent)
      .map(({ body }) => JSON.parse(body));
    assert.deepEqual(
      now.map(({ type, data }) => [type, data.areaName, data.enteredAt, data.staySeconds]),
      [
        ['geofence_enter', 'Rest', new Date(startMs + 1_000).toISOString(), undefined],
        ['geofence_exit', 'Depot', new Date(startMs + 1_000).toISOString(), DWELL_SECONDS + 1],
        ['geofence_exit', 'Rest', new Date(startMs + 1_000).toISOString(), DWELL_SECONDS + 1],
      ],
    );
    // Numbers go on far ahead of those that were lost.
    assert.ok(now[0].data.fleet_event_id > lost.data.fleet_event_id + 1_000_000);
    assert.deepEqual(
      now.filter(({ id }) => heard.includes(id)),
      [],
    );
  });

  await t.test('without the key of the secrets nothing is signed, until the secret is rotated', async () => {
    await pod.stop();
    const other = await serve(t, restoredUrl, key, { SECRETS_KEY: Buffer.alloc(32, 8).toString('base64') });
    const { id } = await other.api.ping(hook.id);
    await waitFor(async () => {
      const [ping] = await other.api.deliveries(hook.id, 'limit=1');
      return ping?.id === id && ping.last_error === 'secret_unreadable';
    });
    assert.equal((await other.api.call('POST', `/${hook.id}/rotate-secret`)).status, 200);
    await waitFor(() => receiver.to('/hook').some(typed('ping')));
  });

  await t.test('a backup without the history has everything else', async () => {
    const sql = openSql(restoredUrl, { maxConnections: 1, name: 'test' });
    await sql`create database thin`;
    await sql.end();
    const thinUrl = databaseUrl(restoredUrl, 'thin');
    const without = "pg_dump --exclude-table-data='position_w*' --exclude-table-data='packed_points_w*'";
    await run(t, guideBlock('backup').replace('pg_dump', without), folder, url);
    await run(t, guideBlock('restore'), folder, thinUrl);
    const thin = await serve(t, thinUrl, key);
    assert.deepEqual(await thin.read(`/devices/${IMEI}/history`), []);
    assert.equal((await thin.read(`/devices/${IMEI}/location`)).latitude, INSIDE.latitude);
    await thin.pod.points([point(startMs + 3_000, OUTSIDE)]);
    assert.equal((await thin.read('/events'))[0].data.event, 'exit');
  });
});
