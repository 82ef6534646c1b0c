import type { Tx } from '../postgres/sql.ts';
import { selectPlanNames } from '../tenants/accounts.sql.ts';

/** Why there can be no account on this plan; null when there can. */
export async function planError(tx: Tx, plan: string): Promise<string | null> {
  const names = await selectPlanNames(tx);
  return names.includes(plan)
    ? null
    : `there is no plan ${JSON.stringify(plan)}; choose one of ${names.join(', ')}`;
}
