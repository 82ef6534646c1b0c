import { ChangedJson } from './feeds/changedJson.ts';
import { Cursors } from './feeds/cursors.ts';
import { DeviceFeed } from './feeds/deviceFeed.ts';
import { EventFeed } from './feeds/eventFeed.ts';
import { feedFormat } from './feeds/feedPages.ts';
import type { HeldFleet } from './feeds/readDevices.ts';
import { streamFormat } from './feeds/streams/streamFormat.ts';
import { Streams } from './feeds/streams/streams.ts';
import { UnreadAnswers } from './feeds/unreadAnswers.ts';
import { WaitRoom } from './feeds/waitRoom.ts';
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
  const held: HeldFleet = {
    fleet,
    get followed() {
      return follower.applied.followed;
    },
    get own() {
      return follower.applied.own;
    },
  };
  const cursors = new Cursors({ secretsKey, clock, follower });
  const room = new WaitRoom({ fleet, keyring, follower, turns, clock });
  const unread = new UnreadAnswers(turns);
  const reads = (accountId: number) => connections.reads.of(accountId);
  const changedJson = new ChangedJson();
  const format = feedFormat(changedJson);
  const shared = { cursors, room, unread, format, turns, clock, follower };
  const eventFeed = new EventFeed({ ...shared, reads, cuts: pod.eventCuts });
  const streams = new Streams({
    held,
    cursors,
    eventFeed,
    reads,
    server: () => follower.applied.server,
    format: streamFormat(changedJson),
    room,
    clock,
    keyring,
    follower,
    turns,
    catchUp: () => follower.catchUp(),
    log,
  });
  return {
    eventFeed,
    streams,
    deviceFeed: new DeviceFeed({ ...shared, held }),
    close: () => {
      room.close();
      streams.close();
    },
  };
}
