import type { Sql } from '../postgres/sql.ts';
import { removeDeliveries, selectRemovedWebhooks } from './webhooks.sql.ts';

/** How long one round may take. The rest waits for the next round. */
const ROUND_MS = 30_000;

/**
 * Deletes the deliveries of deleted endpoints, a chunk of each in turn. Ends when none are left, when the time is over
 * or when the pod stops. Every chunk is a transaction of its own, so the next round of any pod continues from there.
 */
export async function removeWebhooks(sql: Sql, isStopping: () => boolean): Promise<void> {
  const untilMs = performance.now() + ROUND_MS;
  const left = new Set(await selectRemovedWebhooks(sql));
  let removed = true;
  while (left.size > 0 && removed) {
    removed = false;
    for (const webhookId of left) {
      if (isStopping() || performance.now() > untilMs) return;
      const { isDone, count } = await removeDeliveries(sql, webhookId);
      if (isDone) left.delete(webhookId);
      removed ||= count > 0;
    }
  }
}
