import { seededRandom } from '../../test/support/seededRandom.ts';
import type { BenchCase } from '../benchCase.ts';
import { runHttpCase } from '../setup/httpCase.ts';

const PAGE = 50;

export const bench: BenchCase = {
  about: 'pages of 50 of the device list over HTTP',
  run: (context) =>
    runHttpCase(
      {
        route: '/api/v3/devices',
        redis: false,
        prepare: async ({ deviceIds }, count) => {
          const random = seededRandom(4);
          const offset = () => Math.floor(random() * (deviceIds.length - PAGE));
          const paths = Array.from(
            { length: count },
            () => `/api/v3/devices?limit=${PAGE}&offset=${offset()}`,
          );
          return [{ what: `devices, pages of ${PAGE}`, paths }];
        },
        isGood: (data) => Array.isArray(data) && data.length === PAGE,
      },
      context,
    ),
};
