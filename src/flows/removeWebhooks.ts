import { removeDeliveries, selectRemovedWebhooks } from '../store/removedWebhooks.ts';
import type { Sql } from '../store/sql.ts';

/** How long one round may take: the rest waits for the next. */
const ROUND_MS = 30_000;

/**
 * Removes the deliveries of endpoints that were deleted, a piece of each in turn, until there are none left, the time
 * is over or the pod stops. Every piece is a transaction of its own, so whoever comes next goes on where this one ended.
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
