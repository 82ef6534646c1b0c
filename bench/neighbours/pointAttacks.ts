import { setTimeout as sleep } from 'node:timers/promises';
import { NO_MOTION } from '../../src/engine/device.ts';
import { encodeDetails, encodePositionUpdates } from '../../src/flows/feed/positionUpdates.ts';
import { recordPositions } from '../../src/store/feed/changes.ts';
import { openSql, type Sql } from '../../src/store/sql/sql.ts';
import { adminOf } from '../../test/support/postgres/admin.ts';
import { type Attack, type Attacker, accountOf, atOnce, sized } from './attack.ts';
import { seedAreas, seedDevices, seedWebhooks } from './seeds.ts';

const PLACE = { lat: 45.5, lng: 10.5 };
const PLACE_SQL = { lat: '45.5', lng: '10.5' };
/** How long another transaction locks the row of a device. */
const HELD_MS = 8_000;
const DEVICES_OF_A_BATCH = 10_000;

/** Attacks through points and devices. */
export const POINT_ATTACKS: readonly Attack[] = [
  {
    name: 'one point into many areas with many endpoints',
    accounts: 1,
    seed: async (seeding) => {
      const { sql, firstImei, receiverUrl } = seeding;
      const { accountId, worldId } = accountOf(seeding);
      const shape = { vertices: 20, centre: PLACE, radiusDeg: 0.1 };
      // As many endpoints as an account may have, and a fiftieth of its areas.
      await seedAreas(sql, { accountId, worldId }, { ...shape, count: sized(seeding, 20, 2_000) });
      const urls = Array.from({ length: sized(seeding, 5, 100) }, (_, n) => `${receiverUrl}/hang/${n}`);
      await seedWebhooks(sql, accountId, urls);
      await seedDevices(sql, worldId, { firstImei, count: 1, place: { lat: '0', lng: '0' } });
    },
    run: async (attacker) => {
      await sendPoint(attacker, 0);
    },
  },
  {
    name: 'device:import of somebody else',
    accounts: 1,
    stays: true,
    run: async (attacker) => {
      const count = sized(attacker, 200, 100_000, 1_000_000);
      const lines = Array.from({ length: count }, (_, n) => ({
        imei: String(attacker.firstImei + n),
        name: `Van ${n}`,
      }));
      await adminOf(attacker.databaseUrl).importDevices(accountOf(attacker).email, lines);
      attacker.count('imported');
    },
  },
  {
    name: 'moves of a long absence',
    accounts: 1,
    seed: (seeding) =>
      seedDevices(seeding.sql, accountOf(seeding).worldId, {
        firstImei: seeding.firstImei,
        count: DEVICES_OF_A_BATCH,
        place: PLACE_SQL,
      }),
    run: (attacker) => withSql(attacker, (sql) => recordOften(sql, attacker, sized(attacker, 2, 200))),
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
    run: (attacker) =>
      withSql(attacker, async (sql) => {
        await sql.begin(async (tx) => {
          await tx`
            select from device_state where device_id = (select id from device where imei = ${String(attacker.firstImei)})
            for update`;
          // Not awaited: they are answered when the lock is released, or time out.
          void atOnce(sized(attacker, 5, 20), (n) => sendPoint(attacker, n)).catch(() => undefined);
          await sleep(sized(attacker, 200, HELD_MS));
        });
      }),
  },
];

function sendPoint(attacker: Attacker, n: number): Promise<number | null> {
  const point = {
    imei: String(attacker.firstImei),
    recorded_at: Date.now() + n,
    latitude: PLACE.lat,
    longitude: PLACE.lng,
  };
  return attacker.call({
    url: `${attacker.ingestUrl}/positions`,
    method: 'POST',
    headers: { 'Content-Type': 'application/json', 'X-Ingest-Token': attacker.token },
    body: JSON.stringify([point]),
  });
}

/** Writes to the change feed what another pod writes for this many full batches. This pod reads them all at once. */
async function recordOften(sql: Sql, attacker: Attacker, batches: number): Promise<void> {
  const rows = await sql<{ id: number }[]>`
    select id from device where world_id = ${accountOf(attacker).worldId} order by id limit ${DEVICES_OF_A_BATCH}`;
  const recordedAtMs = Date.now();
  const batch = (n: number) =>
    encodePositionUpdates(
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
  const details = encodeDetails(rows.map(() => ({ motion: NO_MOTION })));
  await sql.begin(async (tx) => {
    for (let n = 0; n < batches; n++) await recordPositions(tx, batch(n), details, '[]');
  });
  attacker.count('committed');
}

async function withSql(attacker: Attacker, work: (sql: Sql) => Promise<void>): Promise<void> {
  const sql = openSql(attacker.databaseUrl, { maxConnections: 1, name: 'attacker' });
  try {
    await work(sql);
  } finally {
    await sql.end();
  }
}
