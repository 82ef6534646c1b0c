import { type Answer, errorAnswer } from './answer.ts';
import { CallerShares, RecentSums } from './callerShares.ts';
import { NO_SHEDDING, SHED_CLASSES, type ShedClass, type Shedding, stepShedding } from './shedding.ts';

/** How often the delay of the event loop is measured. */
const LOOK_EVERY_MS = 50;

const MESSAGE = 'this server is overloaded at present; try again after Retry-After seconds';
/** Bulk waits longer: it comes back only when all else is answered in time. */
const ANSWERS: Readonly<Record<ShedClass, Answer>> = {
  bulk: { ...errorAnswer('SERVICE_UNAVAILABLE', MESSAGE), headers: { 'Retry-After': '5' } },
  poll: { ...errorAnswer('SERVICE_UNAVAILABLE', MESSAGE), headers: { 'Retry-After': '1' } },
};

/**
 * A refusal waits for so long: it costs nearly as much as a poll, and a caller that asks again at once would cost as much as
 * all polls together. So each connection gets one refusal in this time.
 */
const HOLD_MS: Readonly<Record<ShedClass, number>> = { bulk: 4_000, poll: 500 };

/** Refusals of a class that are given after one look; they take some milliseconds. */
const RELEASED_MAX = 100;

/** A list may wait for its turn as much longer than a poll. */
const BULK_PATIENCE = 10;

/** What is measured of a call counts for so long. */
const COST_WINDOW_MS = 10_000;
const ACCOUNTS_MAX = 4_096;
/** Processor time of a call of bulk beside what is measured of it; polls all cost the same. */
const LEAST_MS = 0.1;

/** Who calls, as far as that is known before anything is looked up: an account, or the network of an address. */
export type LikelyCaller = number | string;

interface ShedderPorts {
  readonly log: {
    warn(fields: object, message: string): void;
    info(fields: object, message: string): void;
  };
  readonly onRefused: (shedAs: ShedClass) => void;
}

/**
 * Refuses calls while the pod is late, see `stepShedding`, of those callers first who ask for most, see CallerShares. A timer
 * measures how late the event loop is, and calls that wait for their turn say how long, see CallTurns. So a call that does not
 * wait costs nothing but a look at `isActive`.
 */
export class Shedder {
  /** False: no call is refused. */
  isActive = false;
  /** How late polls were at the last measurement: by the event loop, and by the calls that were before them. */
  lateMs = 0;
  readonly #ports: ShedderPorts;
  #shedding: Shedding = NO_SHEDDING;
  readonly #shares: Readonly<Record<ShedClass, CallerShares<LikelyCaller>>> = {
    bulk: new CallerShares(),
    poll: new CallerShares(),
  };
  /** Of bulk, by account: the processor time of its long computations, and the calls that went on. */
  readonly #workedMs = new RecentSums<LikelyCaller>(COST_WINDOW_MS, ACCOUNTS_MAX);
  readonly #wentOn = new RecentSums<LikelyCaller>(COST_WINDOW_MS, ACCOUNTS_MAX);
  readonly #held: Readonly<Record<ShedClass, HeldAnswers>> = {
    bulk: new HeldAnswers(HOLD_MS.bulk),
    poll: new HeldAnswers(HOLD_MS.poll),
  };
  #lookedAtMs = 0;
  /** Of the calls that have waited since then. */
  readonly #waited: Readonly<Record<ShedClass, Mean>> = { bulk: new Mean(), poll: new Mean() };
  #timer: NodeJS.Timeout | undefined;

  constructor(ports: ShedderPorts) {
    this.#ports = ports;
  }

  /** Begins to measure. Before, no call is refused. */
  start(): void {
    this.#lookedAtMs = performance.now();
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS).unref();
  }

  /** No call is refused from now on; refusals that wait are given at once. */
  stop(): void {
    clearInterval(this.#timer);
    this.isActive = false;
    for (const shedAs of SHED_CLASSES) this.#held[shedAs].release(Number.POSITIVE_INFINITY);
  }

  /** Whether some calls of the class are refused. */
  isRefusing(shedAs: ShedClass): boolean {
    return this.#shedding[shedAs].share > 0;
  }

  /** The answer to a call that is refused, see HOLD_MS; null: it may go on. */
  refuse(shedAs: ShedClass, caller: LikelyCaller): Answer | Promise<Answer> | null {
    const cost = shedAs === 'poll' ? 1 : this.#meanMs(caller);
    if (this.#shares[shedAs].isRefused(caller, cost)) {
      this.#ports.onRefused(shedAs);
      return this.#held[shedAs].hold(ANSWERS[shedAs], this.#lookedAtMs);
    }
    if (shedAs === 'bulk') this.#wentOn.add(caller, 1);
    return null;
  }

  /** Notes how long a call has waited for its turn. */
  noteWait(shedAs: ShedClass, waitedMs: number): void {
    this.#waited[shedAs].add(waitedMs);
  }

  /** Notes processor time that a computation has taken while calls are refused. `key`: whose it is, see WorkTurns. */
  noteWork(key: number | string, workedMs: number): void {
    if (typeof key === 'number') this.#workedMs.add(key, workedMs);
  }

  /** What a call of the caller has taken on average. */
  #meanMs(caller: LikelyCaller): number {
    return LEAST_MS + this.#workedMs.of(caller) / Math.max(1, this.#wentOn.of(caller));
  }

  #look(): void {
    const nowMs = performance.now();
    const elapsedMs = nowMs - this.#lookedAtMs;
    this.#lookedAtMs = nowMs;
    const poll = Math.max(0, elapsedMs - LOOK_EVERY_MS, this.#waited.poll.take());
    const lateMs = { bulk: Math.max(poll, this.#waited.bulk.take() / BULK_PATIENCE), poll };
    this.lateMs = poll;
    const before = this.#shedding;
    this.#shedding = stepShedding(before, lateMs, elapsedMs);
    this.isActive = this.#shedding.bulk.share > 0;
    this.#workedMs.advance(nowMs);
    this.#wentOn.advance(nowMs);
    for (const shedAs of SHED_CLASSES) {
      const { share } = this.#shedding[shedAs];
      this.#shares[shedAs].share(1 - share, nowMs);
      this.#held[shedAs].release(nowMs, RELEASED_MAX);
      this.#say(shedAs, lateMs[shedAs], before[shedAs].share, share);
    }
  }

  #say(shedAs: ShedClass, lateMs: number, before: number, now: number): void {
    const fields = { class: shedAs, late_ms: Math.round(lateMs) };
    if (before === 0 && now > 0)
      this.#ports.log.warn(fields, 'the pod is late: calls of this class are refused');
    if (before > 0 && now === 0) this.#ports.log.info(fields, 'calls of this class are no longer refused');
  }
}

/** The mean of what was added since it was taken last; 0 of nothing. */
class Mean {
  #sum = 0;
  #count = 0;

  add(value: number): void {
    this.#sum += value;
    this.#count++;
  }

  take(): number {
    const mean = this.#count === 0 ? 0 : this.#sum / this.#count;
    this.#sum = 0;
    this.#count = 0;
    return mean;
  }
}

/** Answers that are given at once where as many wait. */
export const HELD_MAX = 4_096;

/** Answers that wait for the same time each. */
export class HeldAnswers {
  readonly #holdMs: number;
  /** First what has waited longest. */
  readonly #held: { readonly dueMs: number; readonly give: () => void }[] = [];

  constructor(holdMs: number) {
    this.#holdMs = holdMs;
  }

  hold(answer: Answer, nowMs: number): Answer | Promise<Answer> {
    if (this.#held.length >= HELD_MAX) return answer;
    const { promise, resolve } = Promise.withResolvers<Answer>();
    this.#held.push({ dueMs: nowMs + this.#holdMs, give: () => resolve(answer) });
    return promise;
  }

  /** Gives what is due, `most` at once: answers that were held together would be written in one turn of the event loop. */
  release(nowMs: number, most = Number.POSITIVE_INFINITY): void {
    const left = this.#held.findIndex(({ dueMs }) => dueMs > nowMs);
    const due = left === -1 ? this.#held.length : left;
    for (const { give } of this.#held.splice(0, Math.min(due, most))) give();
  }
}
