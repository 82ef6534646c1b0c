import { setTimeout as sleep } from 'node:timers/promises';
import { DeadlineExceeded } from '../lib/deadline.ts';
import type { CommitPorts } from './commitFixes.ts';
import { selectUnlocked } from './deviceStates.sql.ts';
import { type Part, rejectRequest } from './waitingPoints.ts';

/** The pause between two looks at devices that another transaction has locked. It doubles while none becomes free. */
const LOCK_POLL_MS = { first: 5, longest: 40 };
/** A request that still waits after this, for a locked device or for memory, is rejected. */
const WAIT_LIMIT_MS = 15_000;

export interface BlockedPorts extends Pick<CommitPorts, 'sql' | 'memory' | 'follower'> {
  /** Takes parts that can be stored now, or whose request was rejected. */
  readonly onFree: (parts: readonly Part[]) => void;
}

/** Parts that cannot be stored yet, of devices that wait for a lock or for memory. No transaction is open meanwhile. */
export class BlockedParts {
  readonly #ports: BlockedPorts;
  #lockedElsewhere: Part[] = [];
  #isPollingLocks = false;
  #awaitingMemory: Part[] = [];
  #isCatchingUp = false;

  constructor(ports: BlockedPorts) {
    this.#ports = ports;
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
      this.#ports.onFree(parts);
    }
    this.#isCatchingUp = false;
  }

  /** Asks with one short statement after each pause. */
  async #pollLocks(): Promise<void> {
    if (this.#isPollingLocks) return;
    this.#isPollingLocks = true;
    for (let pauseMs = LOCK_POLL_MS.first; this.#lockedElsewhere.length > 0; ) {
      await sleep(pauseMs);
      const unlocked = await this.#unlockedImeis();
      const free: Part[] = [];
      const locked: Part[] = [];
      for (const part of this.#lockedElsewhere) {
        if (isOverdue(part)) rejectRequest(part.request, new DeadlineExceeded('a device stays locked'));
        (part.request.isRejected || unlocked.has(part.imei) ? free : locked).push(part);
      }
      this.#lockedElsewhere = locked;
      pauseMs = free.length > 0 ? LOCK_POLL_MS.first : Math.min(2 * pauseMs, LOCK_POLL_MS.longest);
      this.#ports.onFree(free);
    }
    this.#isPollingLocks = false;
  }

  /** Which of the locked devices are free now. All of them on an error of Postgres: their transaction then reports it. */
  async #unlockedImeis(): Promise<ReadonlySet<string>> {
    const { sql, memory } = this.#ports;
    const imeis = new Map(
      this.#lockedElsewhere.map(({ imei }) => [memory.fleet.anyDevice(imei)?.fields.id ?? 0, imei] as const),
    );
    try {
      const ids = await selectUnlocked(sql, [...imeis.keys()]);
      return new Set(ids.map((id) => imeis.get(id) as string));
    } catch {
      return new Set(imeis.values());
    }
  }
}

function isOverdue({ request }: Part): boolean {
  return performance.now() - request.arrivedAtMs > WAIT_LIMIT_MS;
}
