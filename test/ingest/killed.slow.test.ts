import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { deviceEventData } from '../../src/events/fleetEvent.ts';
import { NO_STATE, stepDevice } from '../../src/ingest/deviceEvents.ts';
import { DAY_MS } from '../../src/lib/time.ts';
import { connectEmbedded } from '../../src/postgres/embedded/embedded.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import {
  PointStream,
  provenPoints,
  type Sent,
  type SentPoint,
  streamDuring,
} from '../support/ingest/pointStream.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { makeDataDir, removeDataDir } from '../support/postgres/cluster.ts';
import { eventually, processesIn } from '../support/postgres/embedded.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { type ServiceProcess, serviceEnv, startProcess } from '../support/service.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';

const KILLS = IS_TORTURE ? 20 : 2;
const SEED = Number(process.env['FLEET_SEED'] ?? (IS_TORTURE ? Date.now() % 1_000_000 : 1));
const OWNER = 'owner@example.com';
const SENDERS = 4;
const DEVICES_PER_SENDER = 3;

const imeiOf = (n: number): string => String(350000000000000 + n);
const IMEIS = Array.from({ length: SENDERS * DEVICES_PER_SENDER }, (_, n) => imeiOf(n));

async function setUp(admin: ReturnType<typeof adminOf>): Promise<string> {
  await admin.account(OWNER);
  for (const imei of IMEIS) await admin.device(OWNER, imei);
  return (await admin.key(OWNER)).key;
}

const streamsOf = (seed: number): PointStream[] =>
  Array.from({ length: SENDERS }, (_, n) => {
    const imeis = IMEIS.slice(n * DEVICES_PER_SENDER, (n + 1) * DEVICES_PER_SENDER);
    return new PointStream(imeis, seed * SENDERS + n, Date.now() - 20 * DAY_MS);
  });

/** Everything that Postgres holds is what was sent, and follows from it. */
async function proveStored(sql: Sql, sent: Sent): Promise<void> {
  const stored = Map.groupBy(await provenPoints(sql, sent), ({ imei }) => imei);
  for (const imei of IMEIS) await proveDevice(sql, imei, stored.get(imei) ?? []);
}

/** State and events of a device are those of its stored points, one after the other. */
async function proveDevice(sql: Sql, imei: string, points: readonly SentPoint[]): Promise<void> {
  let track = NO_STATE;
  const expected: object[] = [];
  for (const point of points) {
    const step = stepDevice(track, {
      imei,
      recordedAtMs: point.recorded_at,
      sentAtMs: null,
      lat: point.latitude,
      lng: point.longitude,
      altitudeM: 0,
      speedKmh: point.speed_kmh,
      heading: 0,
      satellites: 0,
      odometerKm: null,
      ignition: point.ignition ?? null,
      alarms: point.alarm?.split(',') ?? [],
      rfid: point.rfid ?? null,
    });
    track = step.state;
    for (const event of step.events) {
      const occurredAt = new Date(point.recorded_at).toISOString();
      expected.push({ type: event.type, occurredAt, data: deviceEventData(event) });
    }
  }
  const events = await sql<{ type: string; occurred_at: Date; data: object }[]>`
    select type, occurred_at, data from fleet_event where device_imei = ${imei} order by id`;
  assert.deepEqual(
    events.map((row) => ({ type: row.type, occurredAt: row.occurred_at.toISOString(), data: row.data })),
    expected,
  );
  const [state] = await sql<{ recorded_at: Date | null; latitude: number; ignition: boolean | null }[]>`
    select s.* from device_state s join device d on d.id = s.device_id where d.imei = ${imei}`;
  assert.equal(state?.recorded_at?.getTime() ?? null, track.recordedAtMs);
  if (track.recordedAtMs !== null) assert.equal(state?.latitude, track.lat);
  assert.equal(state?.ignition, track.ignition);
}

async function proveMemory(pod: Pod, key: string, sql: Sql): Promise<void> {
  const rows = await sql<{ imei: string; recorded_at: Date | null }[]>`
    select d.imei, s.recorded_at from device_state s join device d on d.id = s.device_id`;
  for (const { imei, recorded_at } of rows) {
    await waitFor(async () => {
      const { body } = await pod.get(`/api/v3/devices/${imei}`, key);
      return (body.data.location?.recorded_at ?? null) === (recorded_at?.toISOString() ?? null);
    });
  }
}

/** Starts it again and again, killing it each time after a few more points were acknowledged. */
async function killOften(
  start: () => ServiceProcess,
  setIngest: (url: string) => void,
  random: () => number,
  sent: () => number,
): Promise<ServiceProcess> {
  for (let kill = 0; ; kill++) {
    const service = start();
    setIngest((await service.listening).ingest);
    const wanted = sent() + 20 + random() * 200;
    await waitFor(() => sent() >= wanted);
    if (kill === KILLS) return service;
    await sleep(random() * 20);
    service.child.kill('SIGKILL');
    await service.ended;
  }
}

describe('the service is killed while points stream in', () => {
  test(`${KILLS} times on a Postgres that lives on: nothing acknowledged is lost, nothing is there twice (seed ${SEED})`, async (t: TestContext) => {
    const { url } = await createDatabase(t);
    const key = await setUp(adminOf(url));
    // Another pod sees it all from beside.
    const witness = await startPod(url, { t });
    let ingest = '';
    const sent = await streamDuring(
      streamsOf(SEED),
      () => ingest,
      async (acknowledged) => {
        await killOften(
          () => startProcess(t, serviceEnv(url)),
          (now) => {
            ingest = now;
          },
          seededRandom(SEED),
          acknowledged,
        );
      },
    );
    const sql = openSql(url, { maxConnections: 1, name: 'test' });
    t.after(() => sql.end());
    assert.ok(sent.acknowledged.length > KILLS * 20);
    await proveStored(sql, sent);
    await proveMemory(witness, key, sql);
  });

  test('with its embedded Postgres: no process stays behind, the next start recovers', async (t: TestContext) => {
    const dataDir = await makeDataDir();
    t.after(() => removeDataDir(dataDir));
    const { DATABASE_URL: _, ...env } = serviceEnv('');
    const start = () => startProcess(t, { ...env, DATA_DIR: dataDir });
    const first = start();
    let ingest = (await first.listening).ingest;
    const admin = adminOf({ DATA_DIR: dataDir });
    await setUp(admin);
    let last = first;
    const sent = await streamDuring(
      streamsOf(SEED),
      () => ingest,
      async (acknowledged) => {
        await waitFor(() => acknowledged() > 50);
        first.child.kill('SIGKILL');
        await first.ended;
        await eventually(
          'no Postgres is left',
          async () => (await processesIn(`${dataDir}/cluster`)).length === 0,
        );
        last = start();
        ingest = (await last.listening).ingest;
        const before = acknowledged();
        await waitFor(() => acknowledged() > before + 20);
      },
    );
    const { url } = await embeddedOf(dataDir);
    const sql = openSql(url, { maxConnections: 1, name: 'test' });
    await proveStored(sql, sent);
    await sql.end();
    last.child.kill('SIGTERM');
    await last.ended;
  });
});

async function embeddedOf(dataDir: string): Promise<{ url: string }> {
  const running = await connectEmbedded(dataDir);
  assert.ok(running);
  return running;
}
