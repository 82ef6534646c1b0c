import { type FairLimits, FairSemaphore } from '../base/fairSemaphore.ts';

/** How an endpoint took its last attempt: `new` when none is known of. */
export type Pace = 'new' | 'quick' | 'slow';

export interface LaneLimits {
  /** Places for lanes of each pace, in all and of one account. */
  readonly places: Readonly<Record<Pace, FairLimits>>;
  /** An attempt that takes longer is slow, whatever comes of it. */
  readonly slowAfterMs: number;
}

const WAITING = { waiting: 4_096, waitingPerKey: 512 };

/**
 * A pod sends to so many endpoints at once, and to an account's share of them. Endpoints that hang have places of their
 * own, so that those of thirty accounts keep nobody waiting but each other; and so have endpoints of which nothing is
 * known yet, few of an account, since they may all turn out to hang.
 */
export const LANE_LIMITS: LaneLimits = {
  places: {
    quick: { running: 128, runningPerKey: 64, ...WAITING },
    new: { running: 64, runningPerKey: 16, ...WAITING },
    slow: { running: 128, runningPerKey: 32, ...WAITING },
  },
  slowAfterMs: 1_000,
};

/** The paces of so many endpoints are remembered. */
const PACES_MAX = 100_000;

/** The right to send to an endpoint for a turn. */
export interface Place {
  /** False when it was taken back: after an attempt that turned out to be slow the turn is over. */
  readonly isHeld: boolean;
  /** Does an attempt, and remembers how long it took. */
  attempt<T>(work: () => Promise<T>): Promise<T>;
  leave(): void;
}

/**
 * Who may send, of the lanes that a pod has taken: places go round the accounts. A lane that turns out to be slow gives
 * its place to another while its attempt goes on, and later waits for one of the few that slow ones have; one quick
 * attempt brings it back.
 */
export class LanePlaces {
  readonly #limits: LaneLimits;
  readonly #places: Readonly<Record<Pace, FairSemaphore<number>>>;
  /** The one tried last stands last. */
  readonly #paces = new Map<number, Pace>();
  #entered = 0;

  constructor(limits: LaneLimits) {
    this.#limits = limits;
    const { quick, new: untried, slow } = limits.places;
    this.#places = {
      quick: new FairSemaphore(quick),
      new: new FairSemaphore(untried),
      slow: new FairSemaphore(slow),
    };
  }

  /** Lanes that have a place, or wait for one. */
  get size(): number {
    return this.#entered + this.#places.quick.waiting + this.#places.new.waiting + this.#places.slow.waiting;
  }

  /** Waits for a place. Rejects with Overloaded when too many do. */
  async enter(webhookId: number, accountId: number): Promise<Place> {
    const pace = this.#paces.get(webhookId) ?? 'new';
    const places = this.#places[pace];
    await places.acquire(accountId);
    this.#entered++;
    let isHeld = true;
    const leave = (): void => {
      if (!isHeld) return;
      isHeld = false;
      this.#entered--;
      places.release(accountId);
    };
    return {
      get isHeld() {
        return isHeld;
      },
      leave,
      attempt: async (work) => {
        const { slowAfterMs } = this.#limits;
        let isSlow = false;
        const timer = setTimeout(() => {
          isSlow = true;
          this.#remember(webhookId, 'slow');
          if (pace !== 'slow') leave();
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
