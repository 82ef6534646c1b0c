import type { LogFollower } from '../changelog/appliedTransactions.memory.ts';
import type { Fleet } from '../devices/fleet.memory.ts';
import type { Clock } from '../lib/time.ts';
import type { WorkTurns } from '../lib/workTurns.ts';
import type { Cursors } from './cursors.ts';
import type { LongPolls } from './longPolls.ts';
import type { ItemTexts, UnreadAnswers } from './pages.ts';
import type { EventReader } from './readEvents.ts';

/** What the feeds and the streams of a pod share. */
export interface FeedPorts {
  readonly fleet: Fleet;
  readonly follower: LogFollower;
  readonly cursors: Cursors;
  readonly polls: LongPolls;
  readonly unread: UnreadAnswers;
  readonly reader: EventReader;
  readonly texts: ItemTexts;
  readonly turns: WorkTurns<string | number>;
  readonly clock: Clock;
}
