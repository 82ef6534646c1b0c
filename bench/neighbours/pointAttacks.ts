import { setTimeout as sleep } from 'node:timers/promises';
import { encodeMoves } from '../../src/flows/moves.ts';
import { recordPositions } from '../../src/store/changes.ts';
import { openSql, type Sql } from '../../src/store/sql.ts';
import { adminOf } from '../../test/support/admin.ts';
import { type Attack, accountOf, atOnce, type Scene, sized } from './attack.ts';
import { seedAreas, seedDevices, seedWebhooks } from './seeds.ts';

const PLACE = { lat: 45.5, lng: 10.5 };
const PLACE_SQL = { lat: '45.5', lng: '10.5' };
/** How long somebody else's transaction holds a device. */
const HELD_MS = 8_000;
const MOVES_OF_A_BATCH = 10_000;

/** Attacks by what follows from a point or a device. */
export const POINT_ATTACKS: readonly Attack[] = [
  {
    name: 'one point into many areas with many endpoints',
    accounts: 1,
    seed: async (seeding) => {
      const { sql, firstImei, receiverUrl } = seeding;
      const { accountId, worldId } = accountOf(seeding);
      const shape = { vertices: 20, centre: PLACE, radiusDeg: 0.1 };
      // As many of each as an account may have of endpoints; a fiftieth of its areas.
      await seedAreas(sql, { accountId, worldId }, { ...shape, count: sized(seeding, 20, 2_000) });
      const urls = Array.from({ length: sized(seeding, 5, 100) }, (_, n) => `${receiverUrl}/hang/${n}`);
      await seedWebhooks(sql, accountId, urls);
      await seedDevices(sql, worldId, { firstImei, count: 1, place: { lat: '0', lng: '0' } });
    },
    run: async (scene) => {
      await sendPoint(scene, 0);
    },
  },
  {
    name: 'device:import of somebody else',
    accounts: 1,
    run: async (scene) => {
      const count = sized(scene, 200, 100_000, 1_000_000);
      const lines = Array.from({ length: count }, (_, n) => ({
        imei: String(scene.firstImei + n),
        name: `Van ${n}`,
      }));
      await adminOf(scene.databaseUrl).importDevices(accountOf(scene).email, lines);
      scene.count('imported');
    },
  },
  {
    name: 'moves of a long absence',
    accounts: 1,
    seed: (seeding) =>
      seedDevices(seeding.sql, accountOf(seeding).worldId, {
        firstImei: seeding.firstImei,
        count: MOVES_OF_A_BATCH,
        place: PLACE_SQL,
      }),
    run: (scene) => withSql(scene, (sql) => moveOften(sql, scene, sized(scene, 2, 200))),
  },
  {
    name: 'a device whose row is locked',
    accounts: 1,
    seed: (seeding) =>
      seedDevices(seeding.sql, accountOf(seeding).worldId, {
        firstImei: seeding.firstImei,
        count: 1,
        place: PLACE_SQL,
      }),
    run: (scene) =>
      withSql(scene, async (sql) => {
        await sql.begin(async (tx) => {
          await tx`
            select from device_state where device_id = (select id from device where imei = ${String(scene.firstImei)})
            for update`;
          // Not waited for here: they are answered once the row is free again, or given up.
          void atOnce(sized(scene, 5, 20), (n) => sendPoint(scene, n)).catch(() => undefined);
          await sleep(sized(scene, 200, HELD_MS));
        });
      }),
  },
];

function sendPoint(scene: Scene, n: number): Promise<number | null> {
  const point = {
    imei: String(scene.firstImei),
    recorded_at: Date.now() + n,
    latitude: PLACE.lat,
    longitude: PLACE.lng,
  };
  return scene.call({
    url: `${scene.ingestUrl}/positions`,
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Ingest-Token': scene.token },
    body: JSON.stringify([point]),
  });
}

/** What another pod writes into the feed with so many full batches, seen by this one all at once. */
async function moveOften(sql: Sql, scene: Scene, batches: number): Promise<void> {
  const rows = await sql<{ id: number }[]>`
    select id from device where world_id = ${accountOf(scene).worldId} order by id limit ${MOVES_OF_A_BATCH}`;
  const recordedAtMs = Date.now();
  const batch = (n: number) =>
    encodeMoves(
      rows.map(({ id }, device) => ({
        deviceId: id,
        position: {
          recordedAtMs: recordedAtMs + n,
          lat: PLACE.lat + device * 1e-5,
          lng: PLACE.lng + n * 1e-5,
          altitudeM: 0,
          speedKmh: 50,
          odometerKm: null,
          movedAtMs: recordedAtMs,
        },
      })),
    );
  await sql.begin(async (tx) => {
    for (let n = 0; n < batches; n++) await recordPositions(tx, batch(n));
  });
  scene.count('committed');
}

async function withSql(scene: Scene, work: (sql: Sql) => Promise<void>): Promise<void> {
  const sql = openSql(scene.databaseUrl, { maxConnections: 1, name: 'attacker' });
  try {
    await work(sql);
  } finally {
    await sql.end();
  }
}
