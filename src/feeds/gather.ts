import type { KeyState } from '../access/credentials.ts';
import { type FeedPorts, LongPoll, PollGroup } from './longPolls.ts';

/** What a call says about the time of its answer. */
export interface Gathering {
  /** The answer comes this long after the call at the earliest; 0: as soon as it can. */
  readonly gatherMs: number;
  /** Calls `listener` when the caller hangs up. */
  readonly whenLeft?: ((listener: () => void) => void) | undefined;
}

/**
 * Waits until a call may be answered. Until then it has a place among the calls that wait, and is not told of news.
 *
 * 'over': the time is up, or the call must be answered at once, since its key or the pod has as many waiting calls as it
 * may, or the pod stops. 'full': the account has as many as it may. 'ended': the caller has hung up, or its key may have
 * changed; it must be told nothing new.
 */
export async function gather(
  { polls, clock }: Pick<FeedPorts, 'polls' | 'clock'>,
  { id, accountId }: Pick<KeyState, 'id' | 'accountId'>,
  { gatherMs, whenLeft }: Gathering,
): Promise<'over' | 'full' | 'ended'> {
  // It follows no world, so there is nothing to serve.
  const nobody = { accountId, worldIds: [] };
  const group = new PollGroup(new Map(), '', nobody, 'devices', null, () => undefined);
  const poll = new LongPoll(group, id, clock() + gatherMs);
  const joined = polls.join(poll);
  if (joined === 'full') return 'full';
  if (joined === 'none') return 'over';
  whenLeft?.(() => polls.leave(poll));
  return (await poll.outcome.promise) === 'ended' ? 'ended' : 'over';
}
