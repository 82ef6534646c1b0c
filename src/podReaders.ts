import { Cursors } from './flows/readers/cursors.ts';
import { DeviceFeed } from './flows/readers/deviceFeed.ts';
import { EventFeed } from './flows/readers/eventFeed.ts';
import type { HeldFleet } from './flows/readers/readDevices.ts';
import { Streams } from './flows/readers/streams.ts';
import { WaitRoom } from './flows/readers/waitRoom.ts';
import { ChangedJson } from './http/answers/changedJson.ts';
import { streamFormat } from './http/answers/streamFormat.ts';
import type { Pod } from './pod.ts';

/** What answers those who follow the fleet with a cursor. */
export interface Readers {
  readonly deviceFeed: DeviceFeed;
  readonly eventFeed: EventFeed;
  readonly streams: Streams;
  /** Items of devices as text, made once for all readers. */
  readonly changedJson: ChangedJson;
  /** Ends all waiting: the pod is about to stop. */
  close(): void;
}

export function createReaders(pod: Pod): Readers {
  const { connections, memory, follower, secretsKey, turns, clock, log } = pod;
  const { fleet, keyring } = memory;
  const held: HeldFleet = {
    fleet,
    get followed() {
      return follower.followed;
    },
    isOwn: (xid) => follower.isOwn(xid),
  };
  const cursors = new Cursors({ secretsKey, clock, follower });
  const room = new WaitRoom({ fleet, keyring, follower, clock });
  const reads = (accountId: number) => connections.reads.of(accountId);
  const eventFeed = new EventFeed({ reads, cuts: pod.eventCuts, cursors, room, clock, follower });
  const changedJson = new ChangedJson();
  const streams = new Streams({
    held,
    cursors,
    eventFeed,
    reads,
    server: () => follower.server,
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
    changedJson,
    deviceFeed: new DeviceFeed({ held, cursors, room, follower }),
    close: () => {
      room.close();
      streams.close();
    },
  };
}
