import { Cursors } from './feeds/cursors.ts';
import { DeviceFeed } from './feeds/deviceFeed.ts';
import { EventFeed } from './feeds/eventFeed.ts';
import { LongPolls } from './feeds/longPolls.ts';
import { ItemTexts, UnreadAnswers } from './feeds/pages.ts';
import { EventReader } from './feeds/readEvents.ts';
import { Streams } from './feeds/streams.ts';
import type { Pod } from './pod.ts';

/** What answers those who follow the fleet with a cursor. */
export interface Readers {
  readonly deviceFeed: DeviceFeed;
  readonly eventFeed: EventFeed;
  readonly streams: Streams;
  /** Ends all waiting: the pod is about to stop. */
  close(): void;
}

export function createReaders(pod: Pod): Readers {
  const { connections, memory, follower, secretsKey, turns, clock, log } = pod;
  const { fleet, keyring } = memory;
  const { applied } = follower;
  const cursors = new Cursors(secretsKey, applied, clock);
  const unread = new UnreadAnswers(turns);
  const polls = new LongPolls({ watch: fleet.watch, keyring, applied, unread, turns, clock });
  const reads = (accountId: number) => connections.reads.of(accountId);
  const reader = new EventReader({ reads, cuts: pod.eventCuts, cursors, follower });
  const texts = new ItemTexts();
  const shared = { fleet, follower, cursors, polls, unread, reader, texts, turns, clock };
  const streams = new Streams({ ...shared, keyring, log });
  return {
    deviceFeed: new DeviceFeed(shared),
    eventFeed: new EventFeed(shared),
    streams,
    close: () => {
      polls.close();
      streams.close();
    },
  };
}
