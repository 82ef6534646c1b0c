import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { DAY_MS } from '../../src/lib/time.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { areaApi } from '../support/http/areas.ts';
import {
  type PlaceOf,
  PointStream,
  provenPoints,
  type SentPoint,
  streamDuring,
} from '../support/ingest/pointStream.ts';
import { anyRoadArea, PLACES, placeAt, type RoadArea, replayRoad } from '../support/ingest/road.ts';
import { startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { type ServiceProcess, serviceEnv, startProcess } from '../support/service.ts';
import { IS_TORTURE } from '../support/torture.ts';
import { waitFor } from '../support/waitFor.ts';

const KILLS = IS_TORTURE ? 50 : 2;
const SEED = Number(process.env['FLEET_SEED'] ?? (IS_TORTURE ? Date.now() % 1_000_000 : 1));
const OWNER = 'owner@example.com';
const AREAS = 20;
const SENDERS = 4;
const DEVICES_PER_SENDER = 3;
const IMEIS = Array.from({ length: SENDERS * DEVICES_PER_SENDER }, (_, n) => String(350000000000000 + n));

/** An account with its devices, and areas over the places where they drive. */
async function setUp(url: string, random: () => number): Promise<ReadonlyMap<number, RoadArea>> {
  const admin = adminOf(url);
  await admin.account(OWNER);
  await admin.importDevices(
    OWNER,
    IMEIS.map((imei) => ({ imei })),
  );
  const { key } = await admin.key(OWNER);
  const pod = await startPod(url);
  const areas = new Map<number, RoadArea>();
  for (let n = 0; n < AREAS; n++) {
    const area = anyRoadArea(`Area ${n}`, random);
    areas.set(await areaApi(pod, key).make(area.body), area);
  }
  await pod.stop();
  return areas;
}

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
  readonly service: ServiceProcess;
  readonly ingest: string;
}

/** The pods that run, each in a process of its own. */
class Processes {
  readonly #t: TestContext;
  readonly #url: string;
  readonly #random: () => number;
  readonly #running = new Set<RunningPod>();
  /** It was given points last. */
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

  /** Where any one of them takes points; it may have died this moment. */
  anyIngest(): string {
    const pods = [...this.#running];
    this.#busy = pods[Math.floor(this.#random() * pods.length)];
    return this.#busy?.ingest ?? '';
  }

  /** Kills the one that has hardly had the time to store what it was given. */
  async killBusy(): Promise<void> {
    assert.ok(this.#busy);
    const { service } = this.#busy;
    this.#running.delete(this.#busy);
    service.child.kill('SIGKILL');
    await service.ended;
  }
}

/** Every device has exactly the events that its stored points make, one after the other. */
async function proveEvents(
  sql: Sql,
  areas: ReadonlyMap<number, RoadArea>,
  stored: readonly SentPoint[],
): Promise<number> {
  const rows = await sql<
    { imei: string; areaId: number; event: string; occurredAt: Date; enteredAt: string }[]
  >`
    select device_imei as imei, area_id as "areaId", direction as event, occurred_at as "occurredAt",
           data->>'enteredAt' as "enteredAt"
    from fleet_event where type = 'geofence' order by id`;
  const reported = Map.groupBy(rows, ({ imei }) => imei);
  const points = Map.groupBy(stored, ({ imei }) => imei);
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

describe('one of two pods is killed, and another takes its place, while points stream in', () => {
  test(`${KILLS} times: no event is lost, none is there twice, and every acknowledged point is there (seed ${SEED})`, async (t) => {
    const { url } = await createDatabase(t);
    const random = seededRandom(SEED);
    const areas = await setUp(url, random);
    const pods = new Processes(t, url, random);
    await Promise.all([pods.start(), pods.start()]);
    const streams = Array.from({ length: SENDERS }, (_, n) => {
      const imeis = IMEIS.slice(n * DEVICES_PER_SENDER, (n + 1) * DEVICES_PER_SENDER);
      return new PointStream(imeis, SEED * SENDERS + n, Date.now() - 100 * DAY_MS, driver());
    });
    const sent = await streamDuring(
      streams,
      () => pods.anyIngest(),
      async (acknowledged) => {
        for (let kill = 0; kill < KILLS; kill++) {
          const wanted = acknowledged() + 20 + random() * 300;
          await waitFor(() => acknowledged() >= wanted);
          await sleep(random() * 10);
          await pods.killBusy();
          await pods.start();
        }
        const wanted = acknowledged() + 200;
        await waitFor(() => acknowledged() >= wanted);
      },
    );
    const sql = openSql(url, { maxConnections: 1, name: 'test' });
    t.after(() => sql.end());
    const events = await proveEvents(sql, areas, await provenPoints(sql, sent));
    t.diagnostic(
      `${events} events of ${sent.acknowledged.length} acknowledged points, ${sent.doubtful.length} given up`,
    );
    assert.ok(events > KILLS * 20, `only ${events} events`);
  });
});
