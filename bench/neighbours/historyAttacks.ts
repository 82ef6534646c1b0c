import { DAY_MS } from '../../src/lib/time.ts';
import { dearTrack } from '../../test/support/ingest/dearTracks.ts';
import { POLYGON_CENTRE } from '../setup/places.ts';
import { storePoints } from '../setup/storedPoints.ts';
import {
  type Attack,
  type AttackSeeding,
  accountOf,
  get,
  inTurn,
  makeArea,
  postJson,
  seedOwnDevices,
  sized,
} from './attack.ts';

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

/** Attacks through questions about stored points. */
export const HISTORY_ATTACKS: readonly Attack[] = [
  backtests('backtests', AROUND),
  backtests('backtests of a track that takes long', DEAR),
  explanations('explanations', AROUND),
  explanations('explanations of a track that takes long', DEAR),
  {
    name: 'questions about history',
    accounts: 1,
    seed: (seeding) => storeFleet(seeding, sized(seeding, 3, 100), sized(seeding, 1, 5), 60),
    run: async (attacker) => {
      const { from, to } = daysBefore(sized(attacker, 1, 5));
      const window = `from=${from}&to=${to}`;
      const { lat, lng } = POLYGON_CENTRE;
      const device = `/api/v3/devices/${attacker.firstImei}/history`;
      const areaId = await makeArea(attacker, dearTrack(POLYGON_CENTRE, 2_000, 5_000));
      const paths = [
        `/api/v3/presence?area_id=${areaId}&limit=200&${window}`,
        `/api/v3/presence?lat=${lat}&lng=${lng}&radius_m=100000&limit=200&${window}`,
        `${device}/summary?by=trip&${window}`,
        `${device}/export?format=geojson&${window}`,
      ];
      await inTurn(attacker, sized(attacker, 6, 60), 6, (n) => get(attacker, paths[n % paths.length] ?? ''));
    },
  },
];

/** A month replayed for ten minimum stays. */
function backtests(name: string, area: object): Attack {
  return {
    name,
    accounts: 1,
    seed: (seeding) => storeFleet(seeding, sized(seeding, 5, 50), sized(seeding, 2, 30), 86),
    run: async (attacker) => {
      const dwells = Array.from({ length: 10 }, (_, n) => n * 60);
      const body = { area, ...daysBefore(sized(attacker, 2, 30)), dwell_seconds: dwells };
      const text = JSON.stringify(body);
      await inTurn(attacker, sized(attacker, 4, 20), 3, () =>
        postJson(attacker, '/api/v3/areas/backtest', text),
      );
    },
  };
}

/** As many points as a call may look at, each written out. */
function explanations(name: string, area: object): Attack {
  return {
    name,
    accounts: 1,
    seed: (seeding) => storeFleet(seeding, 1, sized(seeding, 1, 20), 10),
    run: async (attacker) => {
      const areaId = await makeArea(attacker, area);
      const { from, to } = daysBefore(sized(attacker, 1, 20));
      const path = `/api/v3/areas/${areaId}/explain?device=${attacker.firstImei}&from=${from}&to=${to}&steps=true`;
      await inTurn(attacker, sized(attacker, 4, 60), 6, () => get(attacker, path));
    },
  };
}

/** So many whole days, which end before yesterday. */
function daysBefore(days: number): { startMs: number; from: string; to: string } {
  const startMs = (Math.floor(Date.now() / DAY_MS) - days - 1) * DAY_MS;
  return {
    startMs,
    from: new Date(startMs).toISOString(),
    to: new Date(startMs + days * DAY_MS).toISOString(),
  };
}

/** Gives the first account devices with days of points around POLYGON_CENTRE. */
async function storeFleet(seeding: AttackSeeding, devices: number, days: number, everySeconds: number) {
  const { sql } = seeding;
  await seedOwnDevices(seeding, devices, { lat: '41.9', lng: '12.5' });
  const rows = await sql<{ id: number }[]>`
    select id from device where world_id = ${accountOf(seeding).worldId}`;
  const ids = rows.map(({ id }) => id);
  const stored = { devices, days, everySeconds, centre: POLYGON_CENTRE, radiusDeg: 0.02 };
  await storePoints(sql, ids, { ...stored, startMs: daysBefore(days).startMs });
}
