import { setTimeout as sleep } from 'node:timers/promises';
import { FRESH_MS } from '../access/authorizer.ts';
import type { Sql } from '../postgres/sql.ts';
import { countPodsBehind } from './pods.sql.ts';

/**
 * A little longer than a pod treats its memory as fresh. A pod that has not followed the write by then asks Postgres
 * before each answer, so the write holds there too, or it has lost Postgres.
 */
const AWAIT_PODS_LIMIT_MS = FRESH_MS + 500;
const POLL_MS = 20;

/** Waits until every live pod has applied the transaction `xid`. False when one has not within the limit. */
export async function awaitPods(sql: Sql, xid: string): Promise<boolean> {
  const untilMs = performance.now() + AWAIT_PODS_LIMIT_MS;
  while ((await countPodsBehind(sql, xid)) > 0) {
    if (performance.now() > untilMs) return false;
    await sleep(POLL_MS);
  }
  return true;
}
