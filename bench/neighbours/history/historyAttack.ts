import { DAY_MS } from '../../../src/lib/durations.ts';
import { dearTrack } from '../../../test/support/ingest/dearTracks.ts';
import { POLYGON_CENTRE } from '../../setup/containsPaths.ts';
import { type Attack, type AttackSetup, accountOf, headersOf, inTurn, makeArea, sized } from '../attack.ts';
import { storeFleet } from './storedFleet.ts';

const daysOf = (setup: AttackSetup): number => sized(setup, 1, 5);
const startMs = (days: number): number => Math.floor(Date.now() / DAY_MS - days - 1) * DAY_MS;

/** The longest presences of a fleet, and the summary and the export of a vehicle, again and again. */
export const HISTORY_QUESTIONS: Attack = {
  name: 'questions about history',
  accounts: 1,
  seed: (seeding) => {
    const days = daysOf(seeding);
    return storeFleet(seeding, {
      devices: sized(seeding, 3, 100),
      days,
      everySeconds: 60,
      startMs: startMs(days),
    });
  },
  run: async (attacker) => {
    const { apiUrl, firstImei } = attacker;
    const fromMs = startMs(daysOf(attacker));
    const window = `from=${new Date(fromMs).toISOString()}&to=${new Date(fromMs + daysOf(attacker) * DAY_MS).toISOString()}`;
    const { lat, lng } = POLYGON_CENTRE;
    const device = `/api/v3/devices/${firstImei}/history`;
    const areaId = await makeArea(attacker, dearTrack(POLYGON_CENTRE, 2_000, 5_000));
    const paths = [
      `/api/v3/presence?area_id=${areaId}&limit=200&${window}`,
      `/api/v3/presence?lat=${lat}&lng=${lng}&radius_m=100000&limit=200&${window}`,
      `${device}/summary?by=trip&${window}`,
      `${device}/export?format=geojson&${window}`,
    ];
    await inTurn(attacker, sized(attacker, 6, 60), 6, (n) =>
      attacker.call({ url: apiUrl + paths[n % paths.length], headers: headersOf(accountOf(attacker)) }),
    );
  },
};
