import { scopeMask } from '../access/scopes.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import { type Answer, dataAnswer } from '../http/answer.ts';
import { answered, dataBody, type Operation } from '../http/openapi/operation.ts';
import { envelope, integer, type Schema, shapeOf } from '../http/openapi/schema.ts';
import type { Call, ReadPorts, Route } from '../http/route.ts';
import { type AreaQuota, selectAreaQuota } from './areas.sql.ts';

const EXAMPLE_QUOTA = { areas: 12, vertices: 480, maxAreas: 20_000, maxVertices: 4_000_000 };
const usedOf = (description: string): Schema => ({
  ...shapeOf<Used>({
    used: integer('How many there are.', { minimum: 0 }),
    limit: integer('How many the plan allows.', { minimum: 0 }),
  }),
  description,
});

export const USAGE: Operation = {
  id: 'getUsage',
  tag: 'Areas',
  summary: 'Show how much the account has of what its plan allows',
  description:
    'Beyond `areas` and `vertices` nothing is created (422 `LIMIT_REACHED`). Beyond `stays` a device that comes into one more area begins no stay there, so there is no entry, until there is room again.',
  parameters: [],
  answers: [
    answered(
      200,
      'The counts with their limits.',
      envelope(
        shapeOf<ReturnType<typeof usageView>>({
          areas: usedOf('Areas that the account made, shared ones too.'),
          vertices: usedOf('Their vertices; circles and points have none.'),
          stays: usedOf('Devices in these areas, one for each device and area, pending ones too.'),
        }),
      ),
      { some: dataBody(usageView(EXAMPLE_QUOTA, { used: 31, limit: 2_000_000 })) },
    ),
  ],
  errors: [],
};

interface UsagePorts extends ReadPorts {
  readonly fleet: Fleet;
}

/** How much an account has of what its plan allows: areas and vertices from Postgres, stays from memory. */
export function usageRoute(ports: UsagePorts): Route {
  return {
    method: 'GET',
    path: '/usage',
    scopes: scopeMask('read_areas'),
    versions: ['v3'],
    shedAs: 'poll',
    describe: USAGE,
    handle: (call) => usage(ports, call),
  };
}

async function usage({ reads, fleet }: UsagePorts, { caller: { accountId } }: Call): Promise<Answer> {
  const quota = await selectAreaQuota(reads(accountId), accountId);
  const { stays } = fleet;
  return dataAnswer(usageView(quota, { used: stays.ofAccount(accountId), limit: stays.limitOf(accountId) }));
}

/** How much there is, and may be. */
export interface Used {
  readonly used: number;
  readonly limit: number;
}

function usageView({ areas, vertices, maxAreas, maxVertices }: AreaQuota, stays: Used) {
  return {
    areas: { used: areas, limit: maxAreas },
    vertices: { used: vertices, limit: maxVertices },
    stays,
  };
}
