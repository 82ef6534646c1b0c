import { DAY_MS } from '../../../src/lib/durations.ts';
import { dearTrack } from '../../../test/support/ingest/dearTracks.ts';
import { POLYGON_CENTRE } from '../../setup/containsPaths.ts';
import { storePoints } from '../../setup/storedPoints.ts';
import { type Attack, type AttackSetup, accountOf, headersOf, inTurn, makeArea, sized } from '../attack.ts';
import { seedDevices } from '../seeds.ts';

const daysOf = (setup: AttackSetup): number => sized(setup, 1, 20);
const startMs = (days: number): number => Math.floor(Date.now() / DAY_MS - days - 1) * DAY_MS;

/** A track of 2 000 points that is always near. */
const AROUND = {
  name: 'Everywhere',
  type: 'polyline',
  buffer_m: 500,
  points: Array.from({ length: 2_000 }, (_, n) => ({
    lat: POLYGON_CENTRE.lat - 0.02 + n * 2e-5,
    lng: POLYGON_CENTRE.lng + 0.01 * Math.sin(n / 20),
  })),
};

/** As many points as a call may look at, each written out; also against a track that takes more than a call may. */
export const EXPLAIN_ATTACKS: readonly Attack[] = [
  explanations('explanations', AROUND),
  explanations('explanations of a track that takes long', dearTrack(POLYGON_CENTRE, 2_000, 2_000)),
];

function explanations(name: string, area: object): Attack {
  return {
    name,
    accounts: 1,
    seed: async (seeding) => {
      const { sql, firstImei } = seeding;
      const { worldId } = accountOf(seeding);
      await seedDevices(sql, worldId, { firstImei, count: 1, place: { lat: '41.9', lng: '12.5' } });
      const rows = await sql<{ id: number }[]>`select id from device where world_id = ${worldId}`;
      const days = daysOf(seeding);
      await storePoints(
        sql,
        rows.map(({ id }) => id),
        {
          devices: 1,
          days,
          everySeconds: 10,
          startMs: startMs(days),
          centre: POLYGON_CENTRE,
          radiusDeg: 0.02,
        },
      );
    },
    run: async (attacker) => {
      const { apiUrl, firstImei } = attacker;
      const headers = headersOf(accountOf(attacker));
      const areaId = await makeArea(attacker, area);
      const fromMs = startMs(daysOf(attacker));
      const window = `from=${new Date(fromMs).toISOString()}&to=${new Date(fromMs + daysOf(attacker) * DAY_MS).toISOString()}`;
      const url = `${apiUrl}/api/v3/areas/${areaId}/explain?device=${firstImei}&${window}&steps=true`;
      await inTurn(attacker, sized(attacker, 4, 60), 6, () => attacker.call({ url, headers }));
    },
  };
}
