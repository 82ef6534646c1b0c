import { DAY_MS } from '../../src/lib/time.ts';
import { dearTrack } from '../../test/support/ingest/dearTracks.ts';
import { POLYGON_CENTRE } from '../setup/places.ts';
import { storePoints } from '../setup/storedPoints.ts';
import type { Attack, AttackSeeding } from './attack.ts';

/** A track of 2 000 points that devices are around most of the time. */
const AROUND = {
  name: 'Everywhere',
  type: 'polyline',
  buffer_m: 500,
  points: Array.from({ length: 2_000 }, (_, n) => ({
    lat: POLYGON_CENTRE.lat - 0.02 + n * 2e-5,
    lng: POLYGON_CENTRE.lng + 0.01 * Math.sin(n / 20),
  })),
};
const DEAR = dearTrack(POLYGON_CENTRE, 2_000, 2_000);

export const HISTORY_ATTACKS: readonly Attack[] = [
  backtests('backtests', AROUND),
  backtests('backtests of a track that takes long', DEAR),
  explanations('explanations', AROUND),
  explanations('explanations of a track that takes long', DEAR),
  {
    name: 'questions about history',
    seed: (seeding) => storeFleet(seeding, seeding.sized(3, 100), seeding.sized(1, 5), 60),
    run: async (attacker) => {
      const { from, to } = daysBefore(attacker.sized(1, 5));
      const window = `from=${from}&to=${to}`;
      const { lat, lng } = POLYGON_CENTRE;
      const device = `/api/v3/devices/${attacker.firstImei}/history`;
      const areaId = await attacker.makeArea(dearTrack(POLYGON_CENTRE, 2_000, 5_000));
      const paths = [
        `/api/v3/presence?area_id=${areaId}&limit=200&${window}`,
        `/api/v3/presence?lat=${lat}&lng=${lng}&radius_m=100000&limit=200&${window}`,
        `${device}/summary?by=trip&${window}`,
        `${device}/export?format=geojson&${window}`,
      ];
      await attacker.inTurn(attacker.sized(6, 60), 6, (n) => attacker.get(paths[n % paths.length] ?? ''));
    },
  },
];

/** A month replayed for ten minimum stays. */
function backtests(name: string, area: object): Attack {
  return {
    name,
    seed: (seeding) => storeFleet(seeding, seeding.sized(5, 50), seeding.sized(2, 30), 86),
    run: async (attacker) => {
      const dwells = Array.from({ length: 10 }, (_, n) => n * 60);
      const { from, to } = daysBefore(attacker.sized(2, 30));
      const body = JSON.stringify({ area, from, to, dwell_seconds: dwells });
      const ask = () => attacker.postJson('/api/v3/areas/backtest', body);
      await attacker.inTurn(attacker.sized(4, 20), 3, ask);
    },
  };
}

/** As many points as a call may look at, each written out. */
function explanations(name: string, area: object): Attack {
  return {
    name,
    seed: (seeding) => storeFleet(seeding, 1, seeding.sized(1, 20), 10),
    run: async (attacker) => {
      const areaId = await attacker.makeArea(area);
      const { from, to } = daysBefore(attacker.sized(1, 20));
      const path = `/api/v3/areas/${areaId}/explain?device=${attacker.firstImei}&from=${from}&to=${to}&steps=true`;
      await attacker.inTurn(attacker.sized(4, 60), 6, () => attacker.get(path));
    },
  };
}

/** So many whole days, which end before yesterday. */
export function daysBefore(days: number): { startMs: number; from: string; to: string } {
  const startMs = (Math.floor(Date.now() / DAY_MS) - days - 1) * DAY_MS;
  const [from, to] = [new Date(startMs).toISOString(), new Date(startMs + days * DAY_MS).toISOString()];
  return { startMs, from, to };
}

/** Gives the first account devices with days of points around POLYGON_CENTRE. */
export async function storeFleet(
  seeding: AttackSeeding,
  devices: number,
  days: number,
  everySeconds: number,
) {
  const { sql } = seeding;
  await seeding.seedDevices(devices, { lat: '41.9', lng: '12.5' });
  const rows = await sql<{ id: number }[]>`
    select id from device where world_id = ${seeding.account().worldId}`;
  const ids = rows.map(({ id }) => id);
  const stored = { devices, days, everySeconds, centre: POLYGON_CENTRE, radiusDeg: 0.02 };
  await storePoints(sql, ids, { ...stored, startMs: daysBefore(days).startMs });
}
