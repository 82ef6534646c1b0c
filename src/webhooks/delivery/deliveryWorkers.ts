import { type FairLimits, FairSemaphore, Overloaded } from '../../lib/fairSemaphore.ts';
import { RepeatedWork } from '../../lib/repeatedWork.ts';
import { errorFields } from '../../postgres/sqlErrors.ts';
import { type DeliverySchedule, OUTBOX_ENTRY } from '../../redis/wakeUps.ts';
import type { BacklogWatch } from '../pauses/backlogWatch.ts';
import { selectWebhookAccounts } from '../webhooks.sql.ts';
import { type DeliverPorts, deliverEndpoint } from './deliverEndpoint.ts';
import { countWaiting, selectDueEndpoints } from './dueEndpoints.sql.ts';

/** Endpoints that hold a slot or wait for one in this pod. At least TAKE_MIN more are taken from the schedule each time,
 * so that one account with many endpoints does not hide those of others. */
const ENDPOINTS_MAX = 256;
const TAKE_MIN = 16;
/** How often the schedule is polled, and how often it is filled again from Postgres. */
const POLL_MS = 100;
const SWEEP_MS = 5_000;
/** Waiting endpoints of one sweep. The next sweep continues after them. */
const SWEEP_ENDPOINTS = 1_000;
/** After an error, or when too many wait for a slot, an endpoint is tried again after this. */
const FAILED_RETRY_MS = 1_000;
/** A backlog is counted up to the first number, and logged when it is larger than the second. */
const BACKLOG_MAX = 10_000;
const LONG_BACKLOG = 1_000;
/** Accounts of this many endpoints are remembered. */
const ACCOUNTS_MAX = 100_000;

export interface DeliveryPorts extends Omit<DeliverPorts, 'isStopping' | 'hasSlot'> {
  readonly slots: DeliverySlots;
  readonly schedule: DeliverySchedule;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  readonly onSweep: (backlog: { waiting: number; oldestDueMs: number }, durationMs: number) => void;
  /** Called when the outbox has events whose deliveries are not made yet. */
  readonly onOutboxFilled: () => void;
}

/** An endpoint that this pod has taken from the schedule. */
interface ActiveEndpoint {
  /** True when the schedule named it again since its deliveries were last checked. */
  isWoken: boolean;
  ended: Promise<void>;
}

/** Takes due endpoints from the schedule and sends to many of them side by side, each in a slot. */
export class DeliveryWorkers {
  readonly #ports: DeliveryPorts;
  readonly #active = new Map<number, ActiveEndpoint>();
  /** Accounts by endpoint. An endpoint never changes its account. */
  readonly #accounts = new Map<number, number>();
  readonly #looks: RepeatedWork;
  readonly #sweeps: RepeatedWork;
  #sweptTo = 0;
  /** The oldest due time among the endpoints that this round of sweeps has seen so far. */
  #oldestDueMs = 0;
  #isStopping = false;

  constructor(ports: DeliveryPorts) {
    this.#ports = ports;
    const warn = (message: string) => (error: unknown) => ports.log.warn(errorFields(error), message);
    this.#looks = new RepeatedWork(
      () => this.#take(),
      warn('the accounts of endpoints cannot be read; trying again'),
    );
    this.#sweeps = new RepeatedWork(
      () => this.#sweep().finally(() => this.poke()),
      warn('the delivery schedule cannot be rebuilt'),
    );
  }

  start(): void {
    this.#sweeps.start(SWEEP_MS);
    this.#looks.start(POLL_MS);
  }

  /**
   * Begins no further attempt, leaves waiting endpoints to other pods, and waits for attempts in flight: at most 10 s. A
   * claim that is under way may still begin one, so it waits for those, too.
   */
  async endAttempts(): Promise<void> {
    this.#isStopping = true;
    this.#looks.end();
    this.#sweeps.end();
    await this.#addAll([...this.#active.keys()], 0);
    await Promise.all([...this.#active.values()].map(({ ended }) => ended));
  }

  /** Ends attempts, then waits for a running sweep: without a time limit if Postgres does not answer. */
  async stop(): Promise<void> {
    await this.endAttempts();
    await this.#sweeps.stop();
  }

  /** Looks for due endpoints. */
  poke(): void {
    this.#looks.wake();
  }

  async #take(): Promise<void> {
    const { schedule, slots, onOutboxFilled } = this.#ports;
    const taken = await schedule.take(Math.max(TAKE_MIN, ENDPOINTS_MAX - slots.size));
    if (taken.includes(OUTBOX_ENTRY)) onOutboxFilled();
    const fresh = taken.filter((webhookId) => {
      if (webhookId === OUTBOX_ENTRY) return false;
      const active = this.#active.get(webhookId);
      if (active !== undefined) active.isWoken = true;
      return active === undefined;
    });
    try {
      await this.#learnAccounts(fresh);
    } catch (error) {
      await this.#addAll(fresh, FAILED_RETRY_MS);
      throw error;
    }
    // Another pod may have them: this one begins nothing more.
    if (this.#isStopping) return this.#addAll(fresh, 0);
    for (const webhookId of fresh) {
      const accountId = this.#accounts.get(webhookId);
      if (accountId === undefined) continue; // the endpoint is gone, with its deliveries
      const endpoint: ActiveEndpoint = { isWoken: false, ended: Promise.resolve() };
      this.#active.set(webhookId, endpoint);
      endpoint.ended = this.#run(webhookId, accountId, endpoint);
    }
  }

  #addAll(webhookIds: readonly number[], dueInMs: number): Promise<void> {
    return this.#ports.schedule.addAll(webhookIds.map((webhookId) => ({ webhookId, dueInMs })));
  }

  async #learnAccounts(webhookIds: readonly number[]): Promise<void> {
    if (this.#accounts.size > ACCOUNTS_MAX) this.#accounts.clear();
    const unknown = webhookIds.filter((webhookId) => !this.#accounts.has(webhookId));
    if (unknown.length === 0) return;
    const known = await selectWebhookAccounts(this.#ports.sql, unknown);
    for (const [webhookId, accountId] of known) this.#accounts.set(webhookId, accountId);
  }

  /** Never rejects. After an error any pod may try again. */
  async #run(webhookId: number, accountId: number, endpoint: ActiveEndpoint): Promise<void> {
    const { schedule, log } = this.#ports;
    let againInMs: number | null = FAILED_RETRY_MS;
    try {
      againInMs = await this.#deliverInSlot(webhookId, accountId, endpoint);
      if (endpoint.isWoken) againInMs = 0;
    } catch (error) {
      if (!(error instanceof Overloaded)) {
        log.warn(
          { webhook_id: webhookId, ...errorFields(error) },
          'delivering to an endpoint failed; trying again',
        );
      }
    }
    this.#active.delete(webhookId);
    if (againInMs !== null) await schedule.add(webhookId, againInMs);
    if (againInMs === 0) this.poke();
  }

  async #deliverInSlot(
    webhookId: number,
    accountId: number,
    endpoint: ActiveEndpoint,
  ): Promise<number | null> {
    const { slots, claim, send } = this.#ports;
    const slot = await slots.acquire(webhookId, accountId);
    const ports: DeliverPorts = {
      ...this.#ports,
      claim: (asked) => {
        // A claim sees everything that was queued before it. Only what wakes the endpoint later needs another look.
        endpoint.isWoken = false;
        return claim(asked);
      },
      send: (request) => slot.attempt(() => send(request)),
      hasSlot: () => slot.isHeld,
      isStopping: () => this.#isStopping,
    };
    try {
      return await deliverEndpoint(ports, webhookId);
    } finally {
      slot.release();
    }
  }

  async #sweep(): Promise<void> {
    const { sql, schedule, log, onSweep } = this.#ports;
    const startedAtMs = performance.now();
    const due = await selectDueEndpoints(sql, this.#sweptTo, SWEEP_ENDPOINTS);
    await schedule.addAll(due.endpoints);
    this.#oldestDueMs = Math.max(this.#sweptTo === 0 ? 0 : this.#oldestDueMs, due.oldestDueMs);
    this.#sweptTo = due.nextAfterId;
    const backlog = { waiting: await countWaiting(sql, BACKLOG_MAX), oldestDueMs: this.#oldestDueMs };
    onSweep(backlog, performance.now() - startedAtMs);
    if (backlog.waiting > LONG_BACKLOG) log.info(backlog, 'deliveries waiting');
  }
}

/** When a pod has made this many deliveries of an endpoint, what waits for its account is counted. */
const COUNTED_STEP = 1_000;
/** Endpoints with fewer new deliveries than a step. Beyond this all of them begin at 0. */
const COUNTED_MAX = 100_000;

/** Wakes the pods that send deliveries, and has the deliveries that wait for an account counted as new ones are made. */
export class DeliveryWaker {
  readonly #schedule: Pick<DeliverySchedule, 'addAll'>;
  readonly #watch: Pick<BacklogWatch, 'count'>;
  /** By endpoint: deliveries made since it was last counted. */
  readonly #made = new Map<number, number>();
  /** Those of this pod, if it sends. */
  workers: Pick<DeliveryWorkers, 'poke'> | null = null;

  constructor(schedule: Pick<DeliverySchedule, 'addAll'>, watch: Pick<BacklogWatch, 'count'>) {
    this.#schedule = schedule;
    this.#watch = watch;
  }

  /** These endpoints have deliveries that are due. */
  readonly wake = (webhookIds: readonly number[]): void => {
    const due = webhookIds.map((webhookId) => ({ webhookId, dueInMs: 0 }));
    void this.#schedule.addAll(due).then(() => this.workers?.poke());
  };

  /** The same, for new deliveries: how many were made, by endpoint. Those of an endpoint with too many are counted. */
  readonly queued = (made: ReadonlyMap<number, number>): void => {
    this.wake([...made.keys()]);
    const crowded: number[] = [];
    for (const [webhookId, count] of made) {
      const sum = (this.#made.get(webhookId) ?? 0) + count;
      if (sum < COUNTED_STEP) this.#made.set(webhookId, sum);
      else {
        this.#made.delete(webhookId);
        crowded.push(webhookId);
      }
    }
    if (this.#made.size > COUNTED_MAX) this.#made.clear();
    if (crowded.length > 0) this.#watch.count(crowded);
  };
}

/** How fast an endpoint took its last attempt; `new` when none is known. */
type Pace = 'new' | 'quick' | 'slow';

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
    this.#semaphores = {
      quick: new FairSemaphore(limits.byPace.quick),
      new: new FairSemaphore(limits.byPace.new),
      slow: new FairSemaphore(limits.byPace.slow),
    };
  }

  /** How many endpoints hold a slot or wait for one. */
  get size(): number {
    return Object.values(this.#semaphores).reduce((sum, { waiting }) => sum + waiting, this.#held);
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
