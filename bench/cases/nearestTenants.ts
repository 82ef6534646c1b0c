import type { BenchCase } from '../benchCase.ts';
import { runHttpCase } from '../setup/httpCase.ts';
import { nearestPaths } from '../setup/nearestCase.ts';
import { splitAmong } from '../setup/tenants.ts';

/** Ten devices for each account. */
const ACCOUNTS = 10_000;
const SMOKE_ACCOUNTS = 50;

export const bench: BenchCase = {
  about: 'nearest k=1 for many small accounts',
  run: (context) =>
    runHttpCase(
      {
        route: '/api/v3/devices/nearest',
        redis: false,
        prepare: async (_world, paths) => {
          const accounts = context.smoke ? SMOKE_ACCOUNTS : ACCOUNTS;
          const keys = await splitAmong(context.databaseUrl, accounts);
          return [{ what: `nearest k=1, ${accounts} accounts`, paths: nearestPaths(paths), keys }];
        },
        isGood: (data) => Array.isArray(data) && data.length === 1,
      },
      context,
    ),
};
