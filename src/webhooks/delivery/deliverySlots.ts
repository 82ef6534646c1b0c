import { type FairLimits, FairSemaphore } from '../../lib/fairSemaphore.ts';

/** How fast an endpoint took its last attempt; `new` when none is known. */
export type Pace = 'new' | 'quick' | 'slow';

export interface SlotLimits {
  /** Slots for endpoints of each pace, in all and of one account. */
  readonly byPace: Readonly<Record<Pace, FairLimits>>;
  /** An attempt that takes longer is slow, whatever its outcome. */
  readonly slowAfterMs: number;
}

const WAITING = { waiting: 4_096, waitingPerKey: 512 };

/**
 * How many endpoints a pod sends to at once, in all and of one account. Slow endpoints have slots of their own, so they
 * keep only each other waiting. Endpoints of unknown pace have slots of their own too, and few per account, because all
 * of them may turn out to be slow.
 */
export const SLOT_LIMITS: SlotLimits = {
  byPace: {
    quick: { running: 128, runningPerKey: 64, ...WAITING },
    new: { running: 64, runningPerKey: 16, ...WAITING },
    slow: { running: 128, runningPerKey: 32, ...WAITING },
  },
  slowAfterMs: 1_000,
};

/** Paces of this many endpoints are remembered. */
const PACES_MAX = 100_000;

/** The right to send to an endpoint. */
export interface Slot {
  /** False after an attempt that turned out to be slow: then another endpoint may have the slot. */
  readonly isHeld: boolean;
  /** Runs an attempt, and remembers the pace of the endpoint. */
  attempt<T>(work: () => Promise<T>): Promise<T>;
  release(): void;
}

/**
 * Decides to which endpoints a pod sends now. Accounts take turns. An endpoint whose attempt turns out to be slow loses
 * its slot while that attempt is still running. From then on it waits for one of the slots for slow endpoints, until
 * one attempt is quick.
 */
export class DeliverySlots {
  readonly #limits: SlotLimits;
  readonly #semaphores: Readonly<Record<Pace, FairSemaphore<number>>>;
  /** By endpoint, in the order of their last attempts. */
  readonly #paces = new Map<number, Pace>();
  #held = 0;

  constructor(limits: SlotLimits) {
    this.#limits = limits;
    const { quick, new: untried, slow } = limits.byPace;
    this.#semaphores = {
      quick: new FairSemaphore(quick),
      new: new FairSemaphore(untried),
      slow: new FairSemaphore(slow),
    };
  }

  /** How many endpoints hold a slot or wait for one. */
  get size(): number {
    const { quick, new: untried, slow } = this.#semaphores;
    return this.#held + quick.waiting + untried.waiting + slow.waiting;
  }

  /** Waits for a slot. Rejects with Overloaded when too many endpoints wait. */
  async acquire(webhookId: number, accountId: number): Promise<Slot> {
    const pace = this.#paces.get(webhookId) ?? 'new';
    const semaphore = this.#semaphores[pace];
    await semaphore.acquire(accountId);
    this.#held++;
    let isHeld = true;
    const release = (): void => {
      if (!isHeld) return;
      isHeld = false;
      this.#held--;
      semaphore.release(accountId);
    };
    return {
      get isHeld() {
        return isHeld;
      },
      release,
      attempt: async (work) => {
        const { slowAfterMs } = this.#limits;
        let isSlow = false;
        const timer = setTimeout(() => {
          isSlow = true;
          this.#remember(webhookId, 'slow');
          if (pace !== 'slow') release();
        }, slowAfterMs);
        try {
          return await work();
        } finally {
          clearTimeout(timer);
          if (!isSlow) this.#remember(webhookId, 'quick');
        }
      },
    };
  }

  #remember(webhookId: number, pace: Pace): void {
    this.#paces.delete(webhookId);
    this.#paces.set(webhookId, pace);
    const [oldest] = this.#paces.keys();
    if (this.#paces.size > PACES_MAX && oldest !== undefined) this.#paces.delete(oldest);
  }
}
