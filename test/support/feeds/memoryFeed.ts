import { createSecretKey } from 'node:crypto';
import type { KeyState } from '../../../src/access/keyState.ts';
import { AppliedTransactions, type LogFollower } from '../../../src/changelog/appliedTransactions.memory.ts';
import { ServerStarts } from '../../../src/changelog/servers.ts';
import { Snapshot } from '../../../src/changelog/snapshot.ts';
import { Fleet } from '../../../src/devices/fleet.memory.ts';
import { ChangedJson } from '../../../src/feeds/changedJson.ts';
import { Cursors } from '../../../src/feeds/cursors.ts';
import { DeviceFeed } from '../../../src/feeds/deviceFeed.ts';
import type { FeedFormat } from '../../../src/feeds/feedPage.ts';
import { feedFormat } from '../../../src/feeds/feedPages.ts';
import type { HeldFleet } from '../../../src/feeds/readDevices.ts';
import { UNREAD_MAX_BYTES, UnreadAnswers } from '../../../src/feeds/unreadAnswers.ts';
import type { WorkTurns } from '../../../src/lib/workTurns.ts';
import { settle, stepTurns, testRoom } from './stepTurns.ts';

export const WORLD = 7;
const NOW_MS = Date.UTC(2026, 10, 20);

/** The keys of an account; both accounts of the tests are members of the organization that has the world. */
export const callerOf = (accountId: number, keyId = accountId * 1_000) =>
  ({ id: keyId, accountId, worldIds: [WORLD] }) as unknown as KeyState;

/** The feed of devices over a memory that a test moves on, without Postgres. */
export class MemoryFeed {
  readonly turns: WorkTurns<string | number> = stepTurns();
  readonly fleet = new Fleet();
  readonly unread: UnreadAnswers;
  readonly feed: DeviceFeed;
  readonly #room: ReturnType<typeof testRoom>;
  /** How often a page with devices was made. */
  pagesMade = 0;
  readonly #applied = new AppliedTransactions();

  constructor(devices: number, { unreadMaxBytes = UNREAD_MAX_BYTES } = {}) {
    this.#applied.noteStarts(new ServerStarts([{ start: 1, walBytes: 0, nextXid: 0 }]));
    this.#follow(10);
    for (let id = 1; id <= devices; id++) {
      const fields = { id, imei: String(350_000_000_000_000 + id), worldId: WORLD, name: `Van ${id}` };
      this.fleet.putDevice({ ...fields, plate: null, model: null, groups: [], editedAtMs: 0 }, 5);
    }
    this.#room = testRoom(this.turns, this.fleet.watch, this.#applied);
    this.unread = new UnreadAnswers(this.turns, unreadMaxBytes);
    const format = feedFormat(new ChangedJson());
    const counted: Pick<FeedFormat, 'changes'> = {
      changes: (items, end, nowMs) => {
        if (items.length > 0) this.pagesMade++;
        return format.changes(items, end, nowMs);
      },
    };
    const follower: LogFollower = {
      applied: this.#applied,
      catchUp: () => Promise.resolve(),
      noteReader: () => undefined,
      writesLagMs: () => 0,
    };
    const { fleet } = this;
    const held: HeldFleet = {
      fleet,
      get followed() {
        return follower.applied.followed;
      },
      own: new Set(),
    };
    const clock = () => NOW_MS;
    const cursors = new Cursors({ secretsKey: createSecretKey(Buffer.alloc(32)), clock, follower });
    const { room } = this.#room;
    const { turns, unread } = this;
    this.feed = new DeviceFeed({ held, cursors, room, unread, format: counted, turns, clock, follower });
  }

  /** A transaction of another account moves on what is followed and changes nothing here. */
  followOthers(): void {
    this.#follow(this.#applied.followed.xmax + 1);
  }

  #follow(xmax: number): void {
    const server = { history: '1/1/1', lineage: 'a', start: 1, walBytes: 0, xmax: 0 };
    this.#applied.advance({ seen: new Snapshot(xmax, xmax, []), server });
  }

  /** Devices are renamed by a transaction that is followed at once. */
  edit(ids: readonly number[]): void {
    const xid = this.#applied.followed.xmax;
    for (const id of ids) {
      const fields = {
        id,
        imei: String(350_000_000_000_000 + id),
        worldId: WORLD,
        name: `Van ${id}, ${xid}`,
      };
      this.fleet.putDevice({ ...fields, plate: null, model: null, groups: [], editedAtMs: 0 }, xid);
    }
    this.followOthers();
    this.#room.announce();
  }

  /** A cursor with everything seen that there is. */
  async cursor(accountId: number): Promise<string> {
    let cursor: string | null = null;
    for (;;) {
      const page = await this.page(accountId, { cursor, limit: 1_000 });
      cursor = page.meta.cursor;
      if (!page.meta.has_more) return cursor;
    }
  }

  /** A page that its reader takes at once. */
  async page(accountId: number, query: { cursor: string | null; limit: number }): Promise<Page> {
    const answer = await this.feed.next(callerOf(accountId), { ...query, waitMs: 0 });
    if (typeof answer === 'string') throw new Error(answer);
    answer.handover?.done();
    return pageOf(answer.bytes);
  }

  wait(accountId: number, cursor: string, limit = 1_000, keyId?: number) {
    return Promise.resolve(this.feed.next(callerOf(accountId, keyId), { cursor, limit, waitMs: 25_000 }));
  }

  settle(): Promise<number> {
    return settle(this.turns);
  }

  close(): void {
    this.#room.room.close();
  }
}

export interface Page {
  readonly data: readonly { readonly imei: string; readonly name: string }[];
  readonly meta: { readonly cursor: string; readonly has_more: boolean };
}

export const pageOf = (bytes: Buffer): Page => JSON.parse(bytes.toString()) as Page;
