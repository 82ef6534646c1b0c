import { DAY_MS } from '../../../src/lib/durations.ts';
import { dearTrack } from '../../../test/support/ingest/dearTracks.ts';
import { POLYGON_CENTRE } from '../../setup/containsPaths.ts';
import { type Attack, type AttackSetup, accountOf, headersOf, inTurn, sized } from '../attack.ts';
import { storeFleet } from './storedFleet.ts';

const daysOf = (setup: AttackSetup): number => sized(setup, 2, 30);
const startMs = (days: number): number => Math.floor(Date.now() / DAY_MS - days) * DAY_MS;

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

/** Months replayed against a track, for ten minimum stays; also one that takes more than a backtest may. */
export const BACKTEST_ATTACKS: readonly Attack[] = [
  backtests('backtests', AROUND),
  backtests('backtests of a track that takes long', dearTrack(POLYGON_CENTRE, 2_000, 2_000)),
];

function backtests(name: string, area: object): Attack {
  return {
    name,
    accounts: 1,
    seed: (seeding) => {
      const days = daysOf(seeding);
      return storeFleet(seeding, {
        devices: sized(seeding, 5, 50),
        days,
        everySeconds: 86,
        startMs: startMs(days),
      });
    },
    run: async (attacker) => {
      const fromMs = startMs(daysOf(attacker));
      const body = JSON.stringify({
        area,
        from: new Date(fromMs).toISOString(),
        to: new Date(fromMs + daysOf(attacker) * DAY_MS).toISOString(),
        dwell_seconds: Array.from({ length: 10 }, (_, n) => n * 60),
      });
      const headers = { ...headersOf(accountOf(attacker)), 'Content-Type': 'application/json' };
      const url = `${attacker.apiUrl}/api/v3/areas/backtest`;
      await inTurn(attacker, sized(attacker, 4, 20), 3, () =>
        attacker.call({ url, method: 'POST', headers, body }),
      );
    },
  };
}
