import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import { selectDevicesByImei } from '../devices/deviceRows.sql.ts';
import { applyPositionUpdates, putDevices } from '../devices/positionUpdates.ts';
import { type Clock, DeadlineExceeded, weekStartMs } from '../lib/time.ts';
import { inTurns } from '../lib/workTurns.ts';
import { ensureWeeks, POSITIONS } from '../postgres/partitions.ts';
import { isUnavailable } from '../postgres/sqlErrors.ts';
import type { Notifier } from '../redis/wakeUps.ts';
import { errorType, IN_POSTGRES, type Span, together } from '../traces/span.ts';
import { type CommitPoint, type CommitPorts, type CommittedFixes, commitFixes } from './commitFixes.ts';
import type { Fix, FixOutcome, RefusedStays } from './fix.ts';
import { MAX_POINTS } from './formats/batchReader.ts';
import type { FoundPart, HeavyLimits, KnownInside } from './heavyParts.ts';
import { HEAVY_LIMITS, HeavyParts } from './heavyParts.ts';
import { selectLocked } from './points.sql.ts';
import { type Part, type PointRequest, rejectRequest, WaitingPoints } from './waitingPoints.ts';

/** How many transactions of this pod may be open at once: one waits for the disk while the next is prepared. */
const TRANSACTIONS_MAX = 3;
/** This many devices cost several milliseconds even before their transaction begins. */
const LARGE_PARTS = 2_000;

export interface IngestPorts extends CommitPorts {
  readonly clock: Clock;
  /** Wakes the other pods after each commit that moved devices. */
  readonly notifier: Pick<Notifier, 'notify'>;
  /** Called after each commit that queued deliveries, with how many by endpoint. */
  readonly onQueued: (made: ReadonlyMap<number, number>) => void;
  /** Called after each commit that put events into the outbox. */
  readonly onOutboxFilled: () => void;
  readonly onOutcomes: (
    outcomes: readonly FixOutcome[],
    eventCount: number,
    refusedStays: readonly RefusedStays[],
  ) => void;
}

/** Too many points are waiting for the database; nothing was stored. */
export class IngestOverload extends Error {
  override name = 'IngestOverload';
}

/** A point in a transaction, and where its outcome goes. */
interface IngestPoint extends CommitPoint {
  readonly request: PointRequest;
  readonly index: number;
}

/**
 * Takes points to the database and into memory. Requests that arrive while transactions are open share the next one
 * (group commit), so a hundred small requests cost little more than a large one. The promise of `store` settles after the
 * commit, with one outcome for each fix in order.
 *
 * The points of one device are stored in the order in which they came. Points of different devices never wait for each
 * other, not even those of one request:
 * - A device that another transaction has locked is left out and taken up when it is free.
 * - A device that is evaluated against something which memory does not know yet waits until memory has caught up.
 * - A device with too much work is evaluated apart (see HeavyParts) and gets a transaction to itself; one such transaction
 *   is open at a time.
 *
 * A request is answered after its last part.
 */
export class Ingest {
  readonly #ports: IngestPorts;
  /** Weeks that have a partition on this start of the server: one that was restored or promoted may lack some of them. */
  readonly #knownWeeks = new Set<number>();
  #weeksOfStart = 0;
  readonly #waiting = new WaitingPoints();
  #openTransactions = 0;
  #isExclusiveOpen = false;
  readonly #blocked: BlockedParts;
  readonly #heavy: HeavyParts;
  /** Parts that can be committed alone. */
  readonly #found: FoundPart[] = [];

  constructor(ports: IngestPorts, heavyLimits: HeavyLimits = HEAVY_LIMITS) {
    this.#ports = ports;
    const onFree = (parts: readonly Part[]): void => {
      for (const part of parts) this.#waiting.unblock(part);
      this.#start();
    };
    this.#blocked = new BlockedParts(ports, onFree);
    const onFound = (found: FoundPart): void => {
      this.#found.push(found);
      this.#start();
    };
    const onRefused = (part: Part): void => {
      this.#count([part], null);
      this.#advance(this.#waiting.takeBlocked(part), null);
      this.#start();
    };
    this.#heavy = new HeavyParts(ports, heavyLimits, onFound, onRefused);
  }

  get waitingPoints(): number {
    return this.#waiting.count;
  }

  /** `span` gets a part for each transaction. */
  store(fixes: readonly Fix[], span: Span | null = null): Promise<FixOutcome[]> {
    if (fixes.length === 0) return Promise.resolve([]);
    const { fleet } = this.#ports.memory;
    return new Promise((resolve, reject) => {
      const request: PointRequest = {
        fixes,
        outcomes: fixes.map(() => null),
        arrivedAtMs: performance.now(),
        resolve,
        reject,
        span,
        openParts: 0,
        isRejected: false,
        isShared: false,
      };
      if (!this.#waiting.add(request, (imei) => fleet.worldOf(imei) ?? 0)) {
        reject(new IngestOverload('too many points are waiting for the database'));
      }
      this.#start();
    });
  }

  /** Opens as many transactions as there are points for. */
  #start(): void {
    while (this.#openTransactions < TRANSACTIONS_MAX) {
      const found = (this.#isExclusiveOpen ? undefined : this.#found.shift()) ?? null;
      const parts = found === null ? this.#waiting.take(MAX_POINTS) : [this.#waiting.takeBlocked(found.part)];
      if (parts.length === 0) return;
      this.#openTransactions++;
      if (found !== null) this.#isExclusiveOpen = true;
      this.#run(parts, found).finally(() => {
        this.#openTransactions--;
        if (found !== null) this.#isExclusiveOpen = false;
        found?.close();
        this.#start();
      });
    }
  }

  /** Never rejects: every error goes to the requests that it concerns. */
  async #run(parts: readonly Part[], found: FoundPart | null): Promise<void> {
    const span = this.#ports.traces === null ? null : transactionSpan(parts);
    try {
      await this.#commit(parts, found, span);
      span?.end();
    } catch (error) {
      span?.fail(errorType(error));
      span?.end();
      const requests = new Set(parts.map((part) => part.request));
      if (requests.size === 1 || isUnavailable(error)) {
        for (const part of parts) {
          rejectRequest(part.request, error);
          this.#waiting.finish(part);
        }
        return;
      }
      // Something in the shared transaction failed. Each request is tried alone, so that one does not cost the others
      // theirs.
      for (const request of requests) {
        const own = parts.filter((part) => part.request === request);
        // What follows a part of another request continues to wait for that part.
        for (const part of own) if (part.previous !== null) this.#waiting.putBack(part, 'ready');
        const first = own.filter((part) => part.previous === null);
        if (first.length > 0) await this.#run(first, found);
      }
    }
  }

  /** `found`: the only part, and which of its points. */
  async #commit(parts: readonly Part[], found: FoundPart | null, span: Span | null): Promise<void> {
    // Ten thousand parts were just sorted and taken: what waits on the sockets comes first.
    if (parts.length >= LARGE_PARTS) await nextTurn();
    const deviceIds = await this.#deviceIdsOf(parts);
    const { start } = this.#ports.follower.applied.server;
    if (start !== this.#weeksOfStart) this.#knownWeeks.clear();
    this.#weeksOfStart = start;
    const points: IngestPoint[] = [];
    const missingWeeks = new Set<number>();
    parts.forEach(({ request, indexes }, n) => {
      const deviceId = deviceIds[n];
      for (const index of found?.indexes ?? indexes) {
        const fix = request.fixes[index] as Fix;
        if (deviceId === undefined) {
          request.outcomes[index] = 'unknown_device';
          continue;
        }
        points.push({ deviceId, fix, outcome: null, request, index, span: request.span });
        const mondayMs = weekStartMs(fix.recordedAtMs);
        if (!this.#knownWeeks.has(mondayMs)) missingWeeks.add(mondayMs);
      }
    });
    if (missingWeeks.size > 0) {
      await ensureWeeks(this.#ports.sql, POSITIONS, [...missingWeeks]);
      for (const mondayMs of missingWeeks) this.#knownWeeks.add(mondayMs);
    }
    if (parts.length >= LARGE_PARTS) await nextTurn();
    const committed =
      points.length === 0 ? null : await this.#commitPoints(points, found?.known ?? null, span);
    this.#count(parts, committed);
    for (const part of parts) this.#advance(part, committed, found !== null);
  }

  #count(parts: readonly Part[], committed: CommittedFixes | null): void {
    const outcomes: FixOutcome[] = [];
    for (const { request, indexes } of parts) {
      for (const index of indexes) {
        const outcome = request.outcomes[index] ?? null;
        if (outcome !== null) outcomes.push(outcome);
      }
    }
    this.#ports.onOutcomes(outcomes, committed?.eventCount ?? 0, committed?.refusedStays ?? []);
  }

  /** Returns when memory has what was committed. Until then the budget counts the stays that begin. */
  async #commitPoints(
    points: readonly IngestPoint[],
    known: KnownInside | null,
    span: Span | null,
  ): Promise<CommittedFixes> {
    const { memory, clock } = this.#ports;
    const { stays } = memory.fleet;
    const budget = stays.openBudget();
    try {
      const committed = await commitFixes(this.#ports, points, clock(), known, budget, span);
      span?.step('publish');
      for (const { request, index, outcome } of points) request.outcomes[index] = outcome;
      await this.#publish(committed);
      return committed;
    } finally {
      stays.closeBudget(budget);
    }
  }

  /** Brings a commit into memory and calls the listeners. It takes turns with requests, because thousands of devices may move. */
  async #publish({
    positionUpdates,
    xid,
    movedIn,
    queuedFor,
    isOutboxFilled,
  }: CommittedFixes): Promise<void> {
    const { memory, turns, follower, notifier, onQueued, onOutboxFilled } = this.#ports;
    const unknown = await inTurns(turns, 'positions', applyPositionUpdates(memory.fleet, positionUpdates));
    if (xid !== null) {
      // A device that memory lacks is loaded when the transaction is followed.
      if (unknown.length === 0) follower.applied.addOwn(xid, movedIn);
      notifier.notify();
    }
    if (queuedFor.size > 0) onQueued(queuedFor);
    if (isOutboxFilled) onOutboxFilled();
  }

  /** After a commit: ends a part that was stored whole, and puts any other back with the points that remain. */
  #advance(part: Part, committed: CommittedFixes | null, isHeavy = false): void {
    const { request, imei } = part;
    part.indexes = part.indexes.filter((index) => request.outcomes[index] === null);
    if (part.indexes.length === 0) {
      this.#waiting.finish(part);
      request.openParts--;
      if (request.openParts === 0) request.resolve(request.outcomes as FixOutcome[]);
      return;
    }
    const deviceId = this.#ports.memory.fleet.idOf(imei) ?? 0;
    if (part.previous === null && committed?.lockedElsewhere.has(deviceId)) {
      this.#waiting.putBack(part, 'blocked');
      this.#blocked.awaitLock(part);
    } else if (part.previous === null && committed?.awaitingMemory.has(deviceId)) {
      this.#waiting.putBack(part, 'blocked');
      this.#blocked.awaitMemory(part);
    } else if (part.previous === null && (isHeavy || committed?.oversized.has(deviceId))) {
      this.#waiting.putBack(part, 'blocked');
      void this.#heavy.add(part);
    } else this.#waiting.putBack(part, 'ready');
  }

  /**
   * The devices of these parts. One may have been created on another pod a moment ago, so only Postgres can say that it is
   * unknown.
   */
  async #deviceIdsOf(parts: readonly Part[]): Promise<readonly (number | undefined)[]> {
    const { sql, memory, turns } = this.#ports;
    const { fleet } = memory;
    const ids = parts.map(({ imei }) => fleet.idOf(imei));
    const unknown = new Set(parts.flatMap(({ imei }, n) => (ids[n] === undefined ? [imei] : [])));
    if (unknown.size === 0) return ids;
    await inTurns(turns, 'positions', putDevices(fleet, await selectDevicesByImei(sql, [...unknown])));
    return parts.map(({ imei }) => fleet.idOf(imei));
  }
}

/** That of a transaction, which is a part of each traced request whose points it stores. */
function transactionSpan(parts: readonly Part[]): Span | null {
  const spans = new Set<Span>();
  for (const { request } of parts) if (request.span !== null) spans.add(request.span);
  return together([...spans])?.child('transaction', IN_POSTGRES) ?? null;
}

/** The pause between two looks at devices that another transaction has locked. It doubles while none becomes free. */
const LOCK_POLL_MS = { first: 5, longest: 40 };
/** A request that still waits after this, for a locked device or for memory, is rejected. */
const WAIT_LIMIT_MS = 15_000;

/** Parts that cannot be stored yet, of devices that wait for a lock or for memory. They hold no transaction. */
class BlockedParts {
  readonly #ports: CommitPorts;
  readonly #onFree: (parts: readonly Part[]) => void;
  #lockedElsewhere: Part[] = [];
  #isPollingLocks = false;
  #awaitingMemory: Part[] = [];
  #isCatchingUp = false;

  /** `onFree` takes parts that can be stored now, or whose request was rejected. */
  constructor(ports: CommitPorts, onFree: (parts: readonly Part[]) => void) {
    this.#ports = ports;
    this.#onFree = onFree;
  }

  /** Keeps a part until no other transaction locks its device. */
  awaitLock(part: Part): void {
    this.#lockedElsewhere.push(part);
    void this.#pollLocks();
  }

  /** Keeps a part until memory holds what its device is evaluated against. */
  awaitMemory(part: Part): void {
    this.#awaitingMemory.push(part);
    void this.#catchUp();
  }

  async #catchUp(): Promise<void> {
    if (this.#isCatchingUp) return;
    this.#isCatchingUp = true;
    while (this.#awaitingMemory.length > 0) {
      const parts = this.#awaitingMemory;
      this.#awaitingMemory = [];
      const failed = await this.#ports.follower.catchUp().then(
        () => null,
        (error: unknown) => ({ error }),
      );
      for (const part of parts) {
        if (failed !== null) rejectRequest(part.request, failed.error);
        else if (isOverdue(part))
          rejectRequest(part.request, new DeadlineExceeded('memory does not catch up'));
      }
      this.#onFree(parts);
    }
    this.#isCatchingUp = false;
  }

  /** Asks with one short statement after each pause. */
  async #pollLocks(): Promise<void> {
    if (this.#isPollingLocks) return;
    this.#isPollingLocks = true;
    for (let pauseMs = LOCK_POLL_MS.first; this.#lockedElsewhere.length > 0; ) {
      await sleep(pauseMs);
      const asked = this.#lockedElsewhere;
      this.#lockedElsewhere = [];
      const lockedIds = await this.#lockedIds(asked);
      const free: Part[] = [];
      for (const part of asked) {
        if (isOverdue(part)) rejectRequest(part.request, new DeadlineExceeded('a device stays locked'));
        const isLocked = lockedIds.has(this.#idOf(part));
        (part.request.isRejected || !isLocked ? free : this.#lockedElsewhere).push(part);
      }
      pauseMs = free.length > 0 ? LOCK_POLL_MS.first : Math.min(2 * pauseMs, LOCK_POLL_MS.longest);
      this.#onFree(free);
    }
    this.#isPollingLocks = false;
  }

  /**
   * Which devices of these parts are still locked. None on an error of Postgres: their transaction then reports it. Nor is
   * one that was deleted in the meantime: its transaction finds that it is unknown.
   */
  async #lockedIds(parts: readonly Part[]): Promise<ReadonlySet<number>> {
    try {
      return await selectLocked(
        this.#ports.sql,
        parts.map((part) => this.#idOf(part)),
      );
    } catch {
      return new Set();
    }
  }

  /** 0 when memory has forgotten the device. */
  #idOf({ imei }: Part): number {
    return this.#ports.memory.fleet.idOf(imei) ?? 0;
  }
}

function isOverdue({ request }: Part): boolean {
  return performance.now() - request.arrivedAtMs > WAIT_LIMIT_MS;
}
