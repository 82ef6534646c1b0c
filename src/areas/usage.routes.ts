import { scopeMask } from '../access/scopes.ts';
import { usageView } from '../devices/deviceViews.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import { type Answer, dataAnswer } from '../http/answer.ts';
import type { ReadPorts } from '../http/ports.ts';
import type { Call, Route } from '../http/route.ts';
import { selectAreaQuota } from './areaUsage.sql.ts';
import { USAGE } from './occupancyOperation.ts';

export interface UsagePorts extends ReadPorts {
  readonly fleet: Fleet;
}

/** How much an account has of what its plan allows: areas and vertices from Postgres, stays from memory. */
export function usageRoute(ports: UsagePorts): Route {
  return {
    method: 'GET',
    path: '/usage',
    scopes: scopeMask('read_areas'),
    versions: ['v3'],
    describe: USAGE,
    handle: (call) => usage(ports, call),
  };
}

async function usage({ reads, fleet }: UsagePorts, { caller: { accountId } }: Call): Promise<Answer> {
  const quota = await selectAreaQuota(reads(accountId), accountId);
  const { stays } = fleet;
  return dataAnswer(usageView(quota, { used: stays.ofAccount(accountId), limit: stays.limitOf(accountId) }));
}
