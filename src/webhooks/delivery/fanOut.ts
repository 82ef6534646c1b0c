import { setTimeout as sleep } from 'node:timers/promises';
import { RepeatedWork } from '../../lib/repeatedWork.ts';
import type { Sql } from '../../postgres/sql.ts';
import { errorFields } from '../../postgres/sqlErrors.ts';
import { countOutbox, deleteFinishedBatches, fanOut } from './outbox.sql.ts';

/** How often the outbox is polled, for events of a pod that was killed before it could wake others. */
export const OUTBOX_POLL_MS = 5_000;
/** After this many chunks, batches of events whose deliveries are all made are deleted. */
const CHUNKS_BETWEEN_DELETIONS = 100;

export interface FanOutPorts {
  readonly sql: Sql;
  /** Called after each chunk with what was made, by endpoint. */
  readonly onQueued: (made: ReadonlyMap<number, number>) => void;
  /** Called with the number of deliveries that are still to be made. */
  readonly onWaiting: (deliveries: number) => void;
  readonly log: { warn(fields: object, message: string): void };
}

/**
 * Makes the deliveries of events in the outbox, which large transactions leave there: a chunk per statement, for the
 * accounts in turns. Any number of pods may do so at once. Postgres keeps their order and makes each delivery once.
 */
export function fanOutWork(ports: FanOutPorts): RepeatedWork {
  return new RepeatedWork(
    (stopped) => emptyOutbox(ports, stopped),
    (error) => ports.log.warn(errorFields(error), 'the outbox cannot be emptied'),
  );
}

async function emptyOutbox({ sql, onQueued, onWaiting }: FanOutPorts, stopped: AbortSignal): Promise<void> {
  const waiting = await countOutbox(sql);
  onWaiting(waiting);
  if (waiting === 0) return;
  let afterAccountId = 0;
  for (let chunk = 1; !stopped.aborted; chunk++) {
    const startedAtMs = performance.now();
    const { made, upToAccountId, done } = await fanOut(sql, afterAccountId);
    if (made.size > 0) onQueued(made);
    if (done === 0 && afterAccountId === 0) break;
    afterAccountId = upToAccountId ?? 0;
    if (chunk % CHUNKS_BETWEEN_DELETIONS === 0) await deleteFinishedBatches(sql);
    // Leaves Postgres to points and callers for as long. Sending deliveries takes longer than making them anyway.
    await sleep(performance.now() - startedAtMs);
  }
  await deleteFinishedBatches(sql);
  onWaiting(await countOutbox(sql));
}
