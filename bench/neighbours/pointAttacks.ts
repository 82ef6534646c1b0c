import { setTimeout as sleep } from 'node:timers/promises';
import { recordPositions } from '../../src/changelog/changes.sql.ts';
import { NO_MOTION } from '../../src/devices/device.ts';
import { encodePositionUpdates } from '../../src/devices/positionUpdates.ts';
import { HOUR_MS } from '../../src/lib/time.ts';
import type { Sql } from '../../src/postgres/sql.ts';
import { dearTrack } from '../../test/support/ingest/dearTracks.ts';
import { adminOf } from '../../test/support/postgres/admin.ts';
import { trackArea } from '../setup/areas.ts';
import { openBenchSql } from '../setup/cluster.ts';
import { type Attack, type Attacker, type AttackSeeding, atOnce } from './attack.ts';
import { seedAreas, seedCopies, seedWebhooks } from './seeds.ts';

const PLACE = { lat: 45.5, lng: 10.5 };
const PLACE_SQL = { lat: '45.5', lng: '10.5' };
const NOWHERE_SQL = { lat: '0', lng: '0' };
/** Near the equator, see dearTrack. */
const DEAR_PLACE = { lat: 0.001, lng: 12.5 };
/** How long another transaction locks the row of a device. */
const HELD_MS = 8_000;
const DEVICES_OF_A_BATCH = 10_000;
const FLEET_DEVICES = 1_000;
const POINTS_OF_A_BATCH = 10_000;
/** So old are the first points of a device that sends tens of thousands. */
const HOURS_OF_POINTS_MS = 3 * HOUR_MS;

export const POINT_ATTACKS: readonly Attack[] = [
  {
    name: 'one point into many areas with many endpoints',
    // As many endpoints as an account may have, and a fiftieth of its areas.
    seed: (seeding) => seedAreasAndEndpoints(seeding, 2_000),
    run: async (attacker) => void (await sendPoint(attacker, 0)),
  },
  {
    name: 'points into many areas until the endpoints are paused',
    seed: async (seeding) => {
      const { sql } = seeding;
      await seedAreasAndEndpoints(seeding, 500);
      // The first point makes more deliveries than may wait.
      await sql`
        insert into plan (name, history_days, max_waiting_deliveries) values ('few deliveries', 180, 20000)
        on conflict do nothing`;
      await sql`update account set plan = 'few deliveries' where id = ${seeding.account().accountId}`;
    },
    run: (attacker) =>
      attacker.inTurn(attacker.sized(4, 20), 1, (n) =>
        attacker.sendPoints([{ ...pointOf(attacker), latitude: PLACE.lat + (n % 2) }]),
      ),
  },
  {
    name: 'more points of a device than may be stored',
    seed: (seeding) => seeding.seedDevices(1, PLACE_SQL),
    run: async (attacker) => {
      const startMs = Date.now() - HOURS_OF_POINTS_MS;
      const size = attacker.sized(100, POINTS_OF_A_BATCH);
      // A device may store 36 000 at once.
      await attacker.inTurn(attacker.sized(2, 8), 2, (batch) => {
        const point = (n: number) => ({
          ...pointOf(attacker),
          recorded_at: startMs + 100 * (batch * size + n),
        });
        return attacker.sendPoints(Array.from({ length: size }, (_, n) => point(n)));
      });
    },
  },
  {
    name: 'points among areas that take long',
    seed: async (seeding) => {
      const { points, buffer_m: bufferM, name } = dearTrack(DEAR_PLACE);
      const definition = trackArea(name, points, bufferM);
      await seedCopies(seeding.sql, seeding.account(), definition, seeding.sized(5, 200, 1_000));
      await seeding.seedDevices(2, NOWHERE_SQL);
    },
    run: async (attacker) => {
      const startMs = Date.now();
      const place = { latitude: DEAR_PLACE.lat, longitude: DEAR_PLACE.lng };
      const pointsOf = (n: number) =>
        Array.from({ length: attacker.sized(2, 40) }, (_, p) => ({
          imei: String(attacker.firstImei + (p % 2)),
          recorded_at: startMs + 1_000 * n + p,
          ...place,
        }));
      // The second request is sent while the first is evaluated, and again, as senders do.
      await attacker.inTurn(attacker.sized(2, 6), 2, (n) => attacker.sendPoints(pointsOf(n >> 1)));
    },
  },
  {
    name: 'imports of areas around a fleet',
    stays: true,
    seed: async (seeding) => {
      const { sql } = seeding;
      const owner = seeding.account();
      const shape = { vertices: 8, centre: PLACE, radiusDeg: 0.1 };
      await seedAreas(sql, owner, { ...shape, count: seeding.sized(20, 5_000, 20_000) });
      // Without events: only the stays are held.
      await sql`update area set dwell_seconds = 86400 where account_id = ${owner.accountId}`;
      await seeding.seedDevices(seeding.sized(5, FLEET_DEVICES), NOWHERE_SQL);
    },
    // Every device comes into every area, so the account reaches its quota of stays.
    run: (attacker) => attacker.inTurn(attacker.sized(5, FLEET_DEVICES), 8, (n) => sendPoint(attacker, 0, n)),
  },
  {
    name: 'device:import of somebody else',
    stays: true,
    run: async (attacker) => {
      const count = attacker.sized(200, 100_000, 1_000_000);
      const line = (n: number) => ({ imei: String(attacker.firstImei + n), name: `Van ${n}` });
      const lines = Array.from({ length: count }, (_, n) => line(n));
      await adminOf(attacker.databaseUrl).importDevices(attacker.account().email, lines);
      attacker.count('imported');
    },
  },
  {
    name: 'moves of a long absence',
    seed: (seeding) => seeding.seedDevices(DEVICES_OF_A_BATCH, PLACE_SQL),
    run: async (attacker) => {
      await using sql = openBenchSql(attacker.databaseUrl);
      await recordOften(sql, attacker, attacker.sized(2, 200));
    },
  },
  {
    name: 'a device whose row is locked',
    seed: (seeding) => seeding.seedDevices(1, PLACE_SQL),
    run: async (attacker) => {
      await using sql = openBenchSql(attacker.databaseUrl);
      await sql.begin(async (tx) => {
        await tx`
          select from device_state where device_id = (select id from device where imei = ${String(attacker.firstImei)})
          for update`;
        // Not awaited: they are answered when the lock is released, or time out.
        void atOnce(attacker.sized(5, 20), (n) => sendPoint(attacker, n)).catch(() => undefined);
        await sleep(attacker.sized(200, HELD_MS));
      });
    },
  },
];

const pointOf = ({ firstImei }: Attacker, device = 0) => ({
  imei: String(firstImei + device),
  recorded_at: Date.now(),
  latitude: PLACE.lat,
  longitude: PLACE.lng,
});

function sendPoint(attacker: Attacker, laterMs: number, device = 0): Promise<number | null> {
  return attacker.sendPoints([{ ...pointOf(attacker, device), recorded_at: Date.now() + laterMs }]);
}

/** One device, and so many areas around PLACE with as many endpoints as an account may have, which never answer. */
async function seedAreasAndEndpoints(seeding: AttackSeeding, areas: number): Promise<void> {
  const { sql, receiverUrl } = seeding;
  const owner = seeding.account();
  const shape = { vertices: 20, centre: PLACE, radiusDeg: 0.1 };
  await seedAreas(sql, owner, { ...shape, count: seeding.sized(20, areas) });
  const urls = Array.from({ length: seeding.sized(5, 100) }, (_, n) => `${receiverUrl}/hang/${n}`);
  await seedWebhooks(sql, owner.accountId, urls);
  await seeding.seedDevices(1, NOWHERE_SQL);
}

/** Writes to the change log what another pod writes for this many full batches. This pod reads them all at once. */
async function recordOften(sql: Sql, attacker: Attacker, batches: number): Promise<void> {
  const rows = await sql<{ id: number }[]>`
    select id from device where world_id = ${attacker.account().worldId} order by id limit ${DEVICES_OF_A_BATCH}`;
  const recordedAtMs = Date.now();
  const motion = { altitudeM: 0, speedKmh: 50, odometerKm: null, movedAtMs: recordedAtMs };
  const batch = (n: number) =>
    encodePositionUpdates(
      rows.map(({ id }, device) => ({
        deviceId: id,
        position: {
          ...motion,
          recordedAtMs: recordedAtMs + n,
          lat: PLACE.lat + device * 1e-5,
          lng: PLACE.lng + n * 1e-5,
        },
        motion: NO_MOTION,
      })),
    );
  await sql.begin(async (tx) => {
    for (let n = 0; n < batches; n++) await recordPositions(tx, batch(n), '[]');
  });
  attacker.count('committed');
}
