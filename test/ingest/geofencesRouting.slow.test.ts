import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { HOUR_MS } from '../../src/lib/time.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { areaApi } from '../support/http/areas.ts';
import {
  anyRoadArea,
  PLACES,
  placeAt,
  type RoadArea,
  type RoadEvent,
  type RoadPoint,
  replayRoad,
} from '../support/ingest/road.ts';
import { INGEST_TOKEN, type Pod, type Reply, request, startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { seededRandom } from '../support/seededRandom.ts';
import { IS_TORTURE } from '../support/torture.ts';

const SEEDS = IS_TORTURE ? Array.from({ length: 10 }, (_, n) => (Date.now() % 100_000) + n) : [1];
const OWNER = 'owner@example.com';
const DEVICES = 4;
const AREAS = 14;
const POINTS = IS_TORTURE ? 60 : 40;
const imeiOf = (device: number): string => String(350_000_000_000_000 + device);

interface Road {
  readonly areas: ReadonlyMap<number, RoadArea>;
  readonly sql: Sql;
  /** A point to any of the pods, after a random while, and again until one of them has answered for it. */
  send(point: object): Promise<Reply>;
  /** The geofence events of a device, in the order of production. */
  events(imei: string): Promise<RoadEvent[]>;
}

/** Three pods on one database, and areas made through one of them. */
async function openRoad(t: TestContext, random: () => number): Promise<Road> {
  const { url } = await createDatabase(t);
  const admin = adminOf(url);
  await admin.account(OWNER);
  const { key } = await admin.key(OWNER);
  await admin.importDevices(
    OWNER,
    Array.from({ length: DEVICES }, (_, n) => ({ imei: imeiOf(n) })),
  );
  const pods = await Promise.all([0, 1, 2].map(() => startPod(url, { t })));
  const anyPod = (): Pod => pods[Math.floor(random() * pods.length)] as Pod;
  const areas = new Map<number, RoadArea>();
  const api = areaApi(pods[0] as Pod, key);
  for (let n = 0; n < AREAS; n++) {
    const area = anyRoadArea(`Area ${n}`, random);
    areas.set(await api.make(area.body), area);
  }
  const sql = openSql(url, { maxConnections: 1, name: 'test' });
  t.after(() => sql.end());
  return {
    areas,
    sql,
    send: async (point) => {
      for (;;) {
        await sleep(random() * 4);
        const reply = await post(anyPod(), point);
        if (reply.status !== 503) return reply;
      }
    },
    events: async (imei) => {
      const found: { id: number; occurred_at: string; data: Record<string, unknown> }[] = [];
      for (let isOver = false; !isOver; ) {
        const query = `type=geofence&device=${imei}&limit=200&offset=${found.length}`;
        const page = (await anyPod().get(`/api/v3/events?${query}`, key)).body.data;
        found.push(...page);
        isOver = page.length === 0;
      }
      return found
        .sort((a, b) => a.id - b.id)
        .map(({ occurred_at: occurredAt, data }) => ({
          areaId: Number(data['areaId']),
          event: String(data['event']),
          occurredAt,
          enteredAt: String(data['enteredAt']),
        }));
    },
  };
}

/** A drive along the road: every point some seconds after the one before, with stops and jumps. */
function anyDrive(random: () => number): RoadPoint[] {
  let place = Math.floor(random() * PLACES);
  let clockMs = Date.now() - HOUR_MS;
  return Array.from({ length: POINTS }, () => {
    clockMs += 1_000 + Math.floor(random() * 30_000);
    const dice = random();
    if (dice < 0.4) place = Math.min(PLACES - 1, Math.max(0, place + (dice < 0.2 ? 1 : -1)));
    else if (dice < 0.45) place = Math.floor(random() * PLACES);
    return { recorded_at: clockMs, ...placeAt(place) };
  });
}

describe('points routed to three pods at random', () => {
  for (const seed of SEEDS) {
    test(`all at the same time: the events of those that were not late, in the order of time (seed ${seed})`, async (t) => {
      const random = seededRandom(seed + 1_000);
      const road = await openRoad(t, random);
      const drives = Array.from({ length: DEVICES }, () => anyDrive(random));
      await Promise.all(drives.map((drive, n) => sendAtOnce(road, imeiOf(n), drive, random)));
      let late = 0;
      for (const [n, drive] of drives.entries()) {
        const rows = await road.sql<{ recorded_at: Date; late: boolean }[]>`
          select recorded_at, late from position p join device d on d.id = p.device_id where imei = ${imeiOf(n)}`;
        assert.equal(rows.length, POINTS, 'late ones are stored, repeats are not');
        const lateMs = new Set(rows.flatMap((row) => (row.late ? [row.recorded_at.getTime()] : [])));
        const punctual = drive.filter((point) => !lateMs.has(point.recorded_at));
        assert.deepEqual(await road.events(imeiOf(n)), replayRoad(road.areas, punctual));
        late += lateMs.size;
      }
      assert.ok(late > 0 && late < DEVICES * POINTS * 0.9, `${late} points were late`);
    });
  }
});

/** Every point in a call of its own, several under way at once, some twice. */
async function sendAtOnce(
  road: Road,
  imei: string,
  drive: readonly RoadPoint[],
  random: () => number,
): Promise<void> {
  const calls = drive.map(async (point, n) => {
    await sleep(n * 3 + random() * 12);
    const times = random() < 0.2 ? 2 : 1;
    const answers = await Promise.all(Array.from({ length: times }, () => road.send({ imei, ...point })));
    for (const { status, text } of answers) assert.equal(status, 200, text);
  });
  await Promise.all(calls);
}

const post = (pod: Pod, point: object): Promise<Reply> =>
  request(`${pod.ingest}/positions`, {
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Ingest-Token': INGEST_TOKEN },
    body: JSON.stringify(point),
  });
