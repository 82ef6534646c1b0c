import { setImmediate as nextTurn } from 'node:timers/promises';
import { AppliedTransactions, WorldWatch } from '../../../src/changelog/appliedTransactions.memory.ts';
import { LongPolls } from '../../../src/feeds/longPolls.ts';
import { UnreadAnswers } from '../../../src/feeds/pages.ts';
import { WorkTurns } from '../../../src/lib/workTurns.ts';

/** Turns without a time budget: each runs one step, so that turns can be counted on any machine. */
export const stepTurns = (): WorkTurns<string | number> => new WorkTurns(0);

/** Runs turns until nothing is left to do. Returns how many there were. */
export async function settle(turns: WorkTurns<string | number>): Promise<number> {
  let count = 0;
  // What a turn sets off may take another.
  for (let idle = 0; idle < 3; ) {
    idle = turns.size === 0 ? idle + 1 : 0;
    if (idle === 0) count++;
    await nextTurn();
  }
  return count;
}

/** Long polls whose clock, news and dropped keys a test decides. */
export function testPolls(
  turns = stepTurns(),
  watch = new WorldWatch(),
  applied = new AppliedTransactions(Date.now),
  unread = new UnreadAnswers(turns),
) {
  const state = { nowMs: 0 };
  let drop: (isDropped: (keyId: number, accountId: number) => boolean) => void = () => undefined;
  const polls = new LongPolls({
    watch,
    keyring: {
      onDropped: (listener) => {
        drop = listener;
      },
    },
    applied,
    unread,
    turns,
    clock: () => state.nowMs,
  });
  return {
    polls,
    unread,
    turns,
    watch,
    state,
    announce: (): void => applied.announce('log'),
    dropKey: (keyId: number): void => drop((id) => id === keyId),
  };
}
