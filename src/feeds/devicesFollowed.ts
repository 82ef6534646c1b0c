import type { KeyState } from '../access/credentials.ts';
import type { LogFollower } from '../changelog/appliedTransactions.memory.ts';
import { DeadlineExceeded, withDeadline } from '../lib/time.ts';
import { isUnavailable } from '../postgres/sqlErrors.ts';
import { CATCH_UP_LIMIT_MS, type DevicesRead } from './cursors.ts';
import type { FeedPorts } from './longPolls.ts';
import { isCurrent } from './readDevices.ts';

type Caller = Pick<KeyState, 'accountId' | 'worldIds'>;

/**
 * Has memory follow until it is at least as new as what a reader was sent; `text`: its cursor. 'expired': it cannot be,
 * since another server has taken over, or another database was put in its place.
 */
export async function catchUpWith(
  { follower, cursors }: Pick<FeedPorts, 'follower' | 'cursors'>,
  text: string | null,
  caller: Caller,
  read: DevicesRead,
): Promise<'current' | 'expired'> {
  const isDone = (): boolean => isCurrent(follower.applied, read);
  if (isDone()) return 'current';
  const untilMs = performance.now() + CATCH_UP_LIMIT_MS;
  do await withDeadline(follower.catchUp(), CATCH_UP_LIMIT_MS, 'reading the change log');
  while (!isDone() && performance.now() < untilMs);
  if (typeof cursors.open(text ?? '', caller) === 'string') return 'expired';
  if (isDone()) return 'current';
  if (follower.applied.isComplete) return 'expired';
  throw new DeadlineExceeded('memory does not hold yet what the cursor has seen');
}

/** Has memory follow what this pod has committed, for which a cursor has no room. Without Postgres it is left out. */
export async function followFirst(follower: LogFollower): Promise<void> {
  const following = follower.catchUp();
  await withDeadline(following, CATCH_UP_LIMIT_MS, 'reading the change log').catch((error) => {
    if (!isUnavailable(error)) throw error;
  });
}
