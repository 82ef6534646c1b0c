import { type ReplayPlace, requeueChunk } from './deliveries.sql.ts';
import type { ReplayRequest } from './replayRequest.ts';
import type { WebhookOwner, WebhookWritePorts } from './saveWebhook.ts';
import { selectWebhook } from './webhooks.sql.ts';

/**
 * Queues everything once more that single replays would take, oldest first, a chunk in a transaction: deliveries are sent
 * from the first chunk on, and what is queued stays queued when this is cut off. Returns how many; undefined when the owner
 * has no such endpoint.
 */
export async function replayDeliveries(
  { write: { sql }, wake }: Pick<WebhookWritePorts, 'write' | 'wake'>,
  owner: WebhookOwner,
  webhookId: number,
  request: ReplayRequest,
): Promise<number | undefined> {
  if ((await selectWebhook(sql, owner.accountId, webhookId)) === undefined) return undefined;
  let count = 0;
  let place: ReplayPlace | null = null;
  do {
    const { requeued, next }: Awaited<ReturnType<typeof requeueChunk>> = await requeueChunk(
      sql,
      webhookId,
      request,
      place,
    );
    if (requeued > 0) wake([webhookId]);
    count += requeued;
    place = next;
  } while (place !== null);
  return count;
}
