import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { deviceEventData } from '../../src/events/fleetEvent.ts';
import { NO_STATE, stepDevice } from '../../src/ingest/deviceEvents.ts';
import { DAY_MS } from '../../src/lib/time.ts';
import { findBinaries } from '../../src/postgres/embedded/binaries.ts';
import { findDataFolder } from '../../src/postgres/embedded/dataFolder.ts';
import { connectEmbedded } from '../../src/postgres/embedded/embedded.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { imeiOf } from '../support/devices.ts';
import { areaApi } from '../support/http/areas.ts';
import {
  type PlaceOf,
  PointStream,
  provenPoints,
  type Sent,
  type SentPoint,
  streamDuring,
} from '../support/ingest/pointStream.ts';
import { anyRoadArea, PLACES, placeAt, type RoadArea, replayRoad } from '../support/ingest/road.ts';
import { type Pod, startPod } from '../support/pod.ts';
import { type Admin, adminOf } from '../support/postgres/admin.ts';
import { makeCluster, makeDataDir, removeDataDir } from '../support/postgres/cluster.ts';
import { eventually, processesIn } from '../support/postgres/embedded.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { type ServiceProcess, serviceEnv, startProcess } from '../support/service.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';

const KILLS = IS_TORTURE ? 50 : 1;
const SEED = Number(process.env['FLEET_SEED'] ?? (IS_TORTURE ? Date.now() % 1_000_000 : 1));
const OWNER = 'owner@example.com';
const AREAS = 20;
const SENDERS = 4;
const DEVICES_PER_SENDER = 3;
const IMEIS = Array.from({ length: SENDERS * DEVICES_PER_SENDER }, (_, n) => imeiOf(n));

/** An account with its devices; returns its key. */
async function setUp(admin: Admin): Promise<string> {
  await admin.account(OWNER);
  await admin.importDevices(
    OWNER,
    IMEIS.map((imei) => ({ imei })),
  );
  return (await admin.key(OWNER)).key;
}

/** Areas over the places where the devices drive. */
async function makeAreas(pod: Pod, key: string, random: () => number): Promise<Map<number, RoadArea>> {
  const areas = new Map<number, RoadArea>();
  for (let n = 0; n < AREAS; n++) {
    const area = anyRoadArea(`Area ${n}`, random);
    areas.set(await areaApi(pod, key).make(area.body), area);
  }
  return areas;
}

const newStreams = (): PointStream[] =>
  Array.from({ length: SENDERS }, (_, n) => {
    const imeis = IMEIS.slice(n * DEVICES_PER_SENDER, (n + 1) * DEVICES_PER_SENDER);
    return new PointStream(imeis, SEED * SENDERS + n, Date.now() - 100 * DAY_MS, driver());
  });

/** A sender's devices go up and down the road, a place at a time or none. */
function driver(): PlaceOf {
  const places = new Map<string, number>();
  return (imei, random) => {
    const before = places.get(imei) ?? Math.floor(random() * PLACES);
    const place = Math.min(PLACES - 1, Math.max(0, before + Math.floor(random() * 4) - 1));
    places.set(imei, place);
    return placeAt(place);
  };
}

interface RunningPod {
  /** Null: it runs in the process of the test. */
  readonly service: ServiceProcess | null;
  readonly ingest: string;
}

/** The pods that run. Those in a process of their own are killed. */
class Processes {
  readonly #t: TestContext;
  readonly #url: string;
  readonly #random: () => number;
  readonly #running = new Set<RunningPod>();
  /** Of those that can be killed, it was given points last. */
  #busy: RunningPod | undefined;

  constructor(t: TestContext, url: string, random: () => number) {
    this.#t = t;
    this.#url = url;
    this.#random = random;
  }

  async start(): Promise<void> {
    const service = startProcess(this.#t, serviceEnv(this.#url));
    this.#running.add({ service, ingest: (await service.listening).ingest });
  }

  add({ ingest }: Pod): void {
    this.#running.add({ service: null, ingest });
  }

  /** Where any one of them takes points; it may have died this moment. */
  anyIngest(): string {
    const pods = [...this.#running];
    const pod = pods[Math.floor(this.#random() * pods.length)];
    if (pod?.service) this.#busy = pod;
    return pod?.ingest ?? '';
  }

  /** Kills the one that has hardly had the time to store what it was given. */
  async killBusy(): Promise<void> {
    assert.ok(this.#busy?.service);
    const { service } = this.#busy;
    this.#running.delete(this.#busy);
    service.child.kill('SIGKILL');
    await service.ended;
  }
}

/** Everything that Postgres holds is what was sent, and follows from it. Returns how many geofence events there are. */
async function proveStored(sql: Sql, sent: Sent, areas: ReadonlyMap<number, RoadArea>): Promise<number> {
  const stored = Map.groupBy(await provenPoints(sql, sent), ({ imei }) => imei);
  for (const imei of IMEIS) await proveDevice(sql, imei, stored.get(imei) ?? []);
  return proveGeofences(sql, areas, stored);
}

/** State and events of a device itself are those of its stored points, one after the other. */
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
    select type, occurred_at, data from fleet_event where device_imei = ${imei} and type <> 'geofence' order by id`;
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

/** Every device has exactly the geofence events that its stored points make, one after the other. */
async function proveGeofences(
  sql: Sql,
  areas: ReadonlyMap<number, RoadArea>,
  points: ReadonlyMap<string, readonly SentPoint[]>,
): Promise<number> {
  const rows = await sql<
    { imei: string; areaId: number; event: string; occurredAt: Date; enteredAt: string }[]
  >`
    select device_imei as imei, area_id as "areaId", direction as event, occurred_at as "occurredAt",
           data->>'enteredAt' as "enteredAt"
    from fleet_event where type = 'geofence' order by id`;
  const reported = Map.groupBy(rows, ({ imei }) => imei);
  for (const imei of IMEIS) {
    assert.deepEqual(
      (reported.get(imei) ?? []).map(({ imei: _, occurredAt, ...row }) => ({
        ...row,
        occurredAt: occurredAt.toISOString(),
      })),
      replayRoad(areas, points.get(imei) ?? []),
    );
  }
  return rows.length;
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

describe('while points stream in', () => {
  test(`one of two pods is killed, ${KILLS} times: nothing acknowledged is lost, nothing is there twice (seed ${SEED})`, async (t) => {
    const { url } = await createDatabase(t);
    const random = seededRandom(SEED);
    const key = await setUp(adminOf(url));
    // Another pod sees it all from beside.
    const witness = await startPod(url, { t });
    const areas = await makeAreas(witness, key, random);
    const pods = new Processes(t, url, random);
    await pods.start();
    // In the short form the witness takes points too, and goes on alone.
    if (IS_TORTURE) await pods.start();
    else pods.add(witness);
    const sent = await streamDuring(
      newStreams(),
      () => pods.anyIngest(),
      async (acknowledged) => {
        for (let kill = 0; kill < KILLS; kill++) {
          const wanted = acknowledged() + 20 + random() * (IS_TORTURE ? 300 : 100);
          await waitFor(() => acknowledged() >= wanted);
          await sleep(random() * 10);
          await pods.killBusy();
          if (IS_TORTURE) await pods.start();
        }
        const wanted = acknowledged() + 100;
        await waitFor(() => acknowledged() >= wanted);
      },
    );
    const sql = openSql(url, { maxConnections: 1, name: 'test' });
    t.after(() => sql.end());
    const events = await proveStored(sql, sent, areas);
    assert.ok(events > KILLS * 10, `only ${events} events`);
    await proveMemory(witness, key, sql);
  });

  test('the service is killed with its embedded Postgres: no process stays behind, the next start recovers', async (t) => {
    const dataDir = await makeDataDir();
    t.after(() => removeDataDir(dataDir));
    const folder = await findDataFolder(dataDir, () => undefined);
    await makeCluster(folder, await findBinaries(folder));
    const { DATABASE_URL: _, ...env } = serviceEnv('');
    const start = () => startProcess(t, { ...env, DATA_DIR: dataDir });
    const first = start();
    let ingest = (await first.listening).ingest;
    const admin = adminOf({ DATA_DIR: dataDir });
    await setUp(admin);
    let last = first;
    const sent = await streamDuring(
      newStreams(),
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
    await proveStored(sql, sent, new Map());
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
