import { setTimeout as sleep } from 'node:timers/promises';
import { countPodsBehind } from '../store/pods.ts';
import type { Sql } from '../store/sql.ts';
import { FRESH_MS } from './admit.ts';

/**
 * No longer than a pod takes its memory for fresh: one that has not followed the write by then asks Postgres before
 * each of its answers, so that the write holds there too, or has lost Postgres.
 */
const AWAIT_PODS_LIMIT_MS = FRESH_MS + 500;
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
