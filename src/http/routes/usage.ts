import { scopeMask } from '../../access/scopes.ts';
import type { Fleet } from '../../memory/fleet.ts';
import { selectAreaQuota } from '../../store/areas/areaUsage.ts';
import { type Answer, dataAnswer } from '../answers/answer.ts';
import { usageView } from '../answers/views.ts';
import { USAGE } from '../openapi/operations/occupancyOperation.ts';
import type { ReadPorts } from './ports.ts';
import type { Call, Route } from './route.ts';

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
