import { createSecretKey } from 'node:crypto';
import type { KeyState } from '../../../src/access/credentials.ts';
import {
  AppliedTransactions,
  type LogFollower,
  Snapshot,
} from '../../../src/changelog/appliedTransactions.memory.ts';
import { ServerStarts } from '../../../src/changelog/serverStarts.ts';
import { Fleet } from '../../../src/devices/fleet.memory.ts';
import { Cursors } from '../../../src/feeds/cursors.ts';
import { DeviceFeed } from '../../../src/feeds/deviceFeed.ts';
import type { FeedPorts } from '../../../src/feeds/longPolls.ts';
import { ItemTexts, type SharedPage, UNREAD_MAX_BYTES, UnreadAnswers } from '../../../src/feeds/pages.ts';
import type { WorkTurns } from '../../../src/lib/workTurns.ts';
import { fieldsOf } from '../devices.ts';
import { settle, stepTurns, testPolls } from './stepTurns.ts';

export const WORLD = 7;
const NOW_MS = Date.UTC(2026, 10, 20);

/** The keys of an account; both accounts of the tests are members of the organization that has the world. */
export const callerOf = (accountId: number, keyId = accountId * 1_000) =>
  ({ id: keyId, accountId, worldIds: [WORLD] }) as unknown as KeyState;

class CountedAnswers extends UnreadAnswers {
  pagesMade = 0;

  override share(accountId: number, bytes: Buffer): SharedPage {
    this.pagesMade++;
    return super.share(accountId, bytes);
  }
}

/** The feed of devices over a memory that a test moves on, without Postgres. */
export class MemoryFeed {
  readonly turns: WorkTurns<string | number> = stepTurns();
  readonly fleet = new Fleet();
  readonly unread: UnreadAnswers;
  readonly feed: DeviceFeed;
  /** Without a reader of events. */
  readonly ports: FeedPorts;
  readonly #polls: ReturnType<typeof testPolls>;
  readonly #counted: CountedAnswers;
  readonly #applied = new AppliedTransactions(Date.now);

  constructor(devices: number, { unreadMaxBytes = UNREAD_MAX_BYTES } = {}) {
    this.#applied.starts = new ServerStarts([{ start: 1, walBytes: 0, nextXid: 0 }]);
    this.#follow(10);
    for (let id = 1; id <= devices; id++)
      this.fleet.putDevice(fieldsOf({ id, worldId: WORLD, name: `Van ${id}` }), 5);
    const counted = new CountedAnswers(this.turns, unreadMaxBytes);
    this.unread = counted;
    this.#counted = counted;
    this.#polls = testPolls(this.turns, this.fleet.watch, this.#applied, counted);
    this.#polls.state.nowMs = NOW_MS;
    const catchUp = () => Promise.resolve(this.whenAsked());
    const follower: LogFollower = { applied: this.#applied, catchUp };
    const clock = () => this.#polls.state.nowMs;
    const cursors = new Cursors(createSecretKey(Buffer.alloc(32)), this.#applied, clock);
    const { polls } = this.#polls;
    const { fleet, turns, unread } = this;
    const texts = new ItemTexts();
    this.ports = { fleet, follower, cursors, polls, unread, texts, turns, clock } as unknown as FeedPorts;
    this.feed = new DeviceFeed(this.ports);
  }

  /** What following the change log brings. */
  whenAsked = (): void => undefined;

  /** The server was stopped and started with all that it had. */
  meetStart(start: number): void {
    const before = { start: this.#applied.server.start, walBytes: 0, nextXid: 0 };
    this.#applied.starts = new ServerStarts([before, { start, walBytes: 1_000, nextXid: 1_000 }]);
    this.#follow(this.#applied.followed.xmax + 1, start);
  }

  /** How often a page with devices was made. */
  get pagesMade(): number {
    return this.#counted.pagesMade;
  }

  /** A transaction of another account moves on what is followed and changes nothing here. */
  followOthers(): void {
    this.#follow(this.#applied.followed.xmax + 1);
  }

  #follow(xmax: number, start = this.#applied.server.start || 1): void {
    const server = { history: '1/1/1', lineage: 'a', start, walBytes: 0, xmax: 0 };
    this.#applied.advance({ seen: new Snapshot(xmax, xmax, []), server });
    this.#applied.writesAtMs = Date.now();
  }

  /** Devices are renamed by a transaction that is followed at once. */
  edit(ids: readonly number[]): void {
    this.change((xid) => {
      for (const id of ids)
        this.fleet.putDevice(fieldsOf({ id, worldId: WORLD, name: `Van ${id}, ${xid}` }), xid);
    });
  }

  /** A transaction that is followed at once. */
  change(work: (xid: number) => void): void {
    work(this.#applied.followed.xmax);
    this.followOthers();
    this.#polls.announce();
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
    const answer = await this.feed.next(callerOf(accountId), { ...query, waitMs: 0, gatherMs: 0 });
    if (typeof answer === 'string') throw new Error(answer);
    answer.handover?.done();
    return pageOf(answer.bytes);
  }

  wait(accountId: number, cursor: string, limit = 1_000, keyId?: number) {
    const query = { cursor, limit, waitMs: 25_000, gatherMs: 0 };
    return Promise.resolve(this.feed.next(callerOf(accountId, keyId), query));
  }

  /** Time passes, which a mocked interval notices when it is run. */
  pass(ms: number): void {
    this.#polls.state.nowMs += ms;
  }

  dropKey(keyId: number): void {
    this.#polls.dropKey(keyId);
  }

  /** Calls that wait. */
  get waiting(): number {
    return this.#polls.polls.size;
  }

  settle(): Promise<number> {
    return settle(this.turns);
  }

  close(): void {
    this.#polls.polls.close();
  }
}

export interface Page {
  readonly data: readonly { readonly imei: string; readonly name: string }[];
  readonly meta: { readonly cursor: string; readonly has_more: boolean };
}

export const pageOf = (bytes: Buffer): Page => JSON.parse(bytes.toString()) as Page;
