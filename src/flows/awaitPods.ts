import { setTimeout as sleep } from 'node:timers/promises';
import { countPodsBehind } from '../store/pods.ts';
import type { Sql } from '../store/sql.ts';

/** A pod that does not follow within this time is not waited for; it is behind with everything. */
const AWAIT_PODS_LIMIT_MS = 2_000;
const POLL_MS = 20;

/** Waits until every live pod has applied the transaction `xid`; false when one had not within the limit. */
export async function awaitPods(sql: Sql, xid: string): Promise<boolean> {
  const untilMs = performance.now() + AWAIT_PODS_LIMIT_MS;
  while ((await countPodsBehind(sql, xid)) > 0) {
    if (performance.now() > untilMs) return false;
    await sleep(POLL_MS);
  }
  return true;
}
