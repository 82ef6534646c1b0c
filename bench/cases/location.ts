import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { seededRandom } from '../../test/support/seededRandom.ts';
import type { BenchCase } from '../benchCase.ts';
import { runHttpCase } from '../setup/httpCase.ts';

export const bench: BenchCase = {
  about: 'the latest location of a device over HTTP',
  run: (context) =>
    runHttpCase(
      {
        route: '/api/v3/devices/:imei/location',
        redis: false,
        prepare: async ({ deviceIds }, count) => {
          const random = seededRandom(3);
          const imei = () => simulatedImei(Math.floor(random() * deviceIds.length));
          const paths = Array.from({ length: count }, () => `/api/v3/devices/${imei()}/location`);
          return [{ what: 'location', paths }];
        },
        isGood: (data) => typeof data === 'object' && data !== null && 'latitude' in data,
      },
      context,
    ),
};
