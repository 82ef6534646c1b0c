import { setTimeout as sleep } from 'node:timers/promises';
import { jaggedRing } from '../setup/areas.ts';
import { POLYGON_CENTRE } from '../setup/places.ts';
import type { Attack, AttackSeeding } from './attack.ts';
import { daysBefore, storeFleet } from './historyAttacks.ts';
import { seedAreas } from './seeds.ts';

const AREAS = { centre: { lat: 20.25, lng: 30.01 }, radiusDeg: 0.3 };
/** So that the calls stay within the limits of the key. */
const FEED_ROUND_MS = 500;
const WORLD = 'bbox=-180,-90,180,90';

/** A large fleet in few places. */
async function seedCrowd(seeding: AttackSeeding): Promise<void> {
  const place = { lat: 'n * 0.00001 + 20', lng: 'mod(n, 300) * 0.0001 + 30' };
  await seeding.seedDevices(seeding.sized(500, 50_000), place);
}

/** Questions about the living fleet, and about the points of all of it. */
export const LIVING_ATTACKS: readonly Attack[] = [
  {
    name: 'nearest with filters that nobody passes',
    seed: seedCrowd,
    run: async (attacker) => {
      // Each is a new one, so no index is ready for it.
      const ask = (n: number) =>
        attacker.get(
          n % 4 === 0
            ? `/api/v3/devices/nearest?lat=20&lng=30&limit=50&max_age_seconds=${n + 1}`
            : `/api/v3/devices/nearest?lat=20&lng=30&limit=50&group=none-${n}`,
        );
      await attacker.inTurn(attacker.sized(8, 110), 8, ask);
    },
  },
  {
    name: 'devices within shapes of many vertices, counts and tiles of the whole world',
    seed: async (seeding) => {
      await seedCrowd(seeding);
      const [vertices, count] = [seeding.sized(50, 2_000), seeding.sized(5, 300)];
      await seedAreas(seeding.sql, seeding.account(), { ...AREAS, vertices, count });
    },
    run: async (attacker) => {
      const ring = jaggedRing(attacker.sized(50, 2_000), AREAS.centre, AREAS.radiusDeg, 2);
      const shape = ring.map(({ lat, lng }) => [lng, lat]);
      const geojson = { type: 'Polygon', coordinates: [[...shape, shape[0]]] };
      const within = JSON.stringify({ geojson, limit: 1_000 });
      const paths = [
        `/api/v3/devices/within?${WORLD}&limit=1000&group=none`,
        `/api/v3/devices/count?${WORLD}`,
        '/api/v3/tiles/areas/0/0/0.mvt',
        '/api/v3/tiles/devices/0/0/0.mvt',
        '/api/v3/tiles/areas/9/298/226.mvt',
      ];
      await attacker.inTurn(attacker.sized(10, 110), 8, (n) =>
        n % 6 === 5 ? attacker.postJson('/api/v3/devices/within', within) : attacker.get(paths[n % 6] ?? ''),
      );
    },
  },
  {
    name: 'files of all points of a fleet',
    seed: (seeding) => storeFleet(seeding, seeding.sized(5, 300), seeding.sized(2, 30), 120),
    run: async (attacker) => {
      const { from, to } = daysBefore(attacker.sized(2, 30));
      const window = `from=${from}&to=${to}`;
      const paths = [
        `/api/v3/history/summary?by=day&format=csv&${window}`,
        `/api/v3/history/export?format=parquet&${window}`,
        `/api/v3/history/export?format=ndjson&${window}`,
        '/api/v3/history/export?cursor=',
      ];
      await attacker.inTurn(attacker.sized(4, 24), 4, (n) => attacker.get(paths[n % paths.length] ?? ''));
      // The last two are never read.
      await attacker.inTurn(2, 2, () => attacker.get(paths[2] ?? '', 'unread'));
    },
    lasts: true,
  },
  {
    name: 'a feed of points, many of them late',
    lasts: true,
    seed: (seeding) => seeding.seedDevices(seeding.sized(20, 1_000), { lat: '41.9', lng: '12.5' }),
    run: async (attacker) => {
      const { lat, lng } = POLYGON_CENTRE;
      const devices = attacker.sized(20, 1_000);
      const started = await fetch(`${attacker.apiUrl}/api/v3/history/export?cursor=`, {
        headers: attacker.headers(),
      });
      const { cursor } = JSON.parse((await started.text()).trimEnd()) as { cursor: string };
      for (let round = 0; !attacker.stopped.aborted; round++) {
        // All but those of the first round are older than the newest point of their device.
        const points = Array.from({ length: devices }, (_, n) => ({
          imei: String(attacker.firstImei + n),
          recorded_at: Date.now() - (round === 0 ? 0 : 3_600_000 + round * 7),
          latitude: lat,
          longitude: lng,
        }));
        await attacker.sendPoints(points);
        await attacker.get(`/api/v3/history/export?cursor=${cursor}`);
        await sleep(FEED_ROUND_MS);
      }
    },
  },
];
