/**
 * After each part of the work, of a millisecond or two, it rests for this many times as long. A seventh of a
 * processor packs more than twice what 200 000 vehicles send.
 */
const REST = 6;
/** With a backlog it rests less, and never less than it works. */
const REST_MIN = 1;
/** What waits to be packed on a usual day: the day that has just been closed, and some of the one before. */
const USUAL_DAYS = 1.5;
/** The same while points of a device wait for a lock: the remainder is made up for when it is released. */
const LOCKED_REST = 2;
const REST_MAX_MS = 1_000;
/** Rests that took longer than they should, as on a busy machine, count for so much of later ones. */
const CREDIT_MAX_MS = 200;
/** Postgres works up to twice as long for a part as this process does. It cannot be asked how long that was. */
const WITH_POSTGRES = 3;

/**
 * The rests between parts of packing. They are measured by the processor time that a part took, of this process and by a
 * guess of Postgres: on a busy machine a part takes long because it waits, and waiting harms nobody.
 */
export class PackingRests {
  readonly #rest: (ms: number) => Promise<unknown>;
  #times = REST;
  /** When the part of the work began that is not rested from yet, and the processor time of the process then. */
  #startMs = 0;
  #startCpu = process.cpuUsage();
  #owedMs = 0;

  constructor(rest: (ms: number) => Promise<unknown>) {
    this.#rest = rest;
  }

  /** Begins a round. `unpackedDays`: how many days of an average device wait. */
  begin(unpackedDays: number): void {
    this.#times = Math.max(REST_MIN, Math.min(REST, (REST * USUAL_DAYS) / unpackedDays));
    this.#beginPart();
  }

  /** Rests for all that is owed. */
  readonly take = (): Promise<void> => this.#take(null);

  /** Rests for a short time, since points of a device wait. */
  readonly takeLocked = (): Promise<void> => this.#take(LOCKED_REST);

  async #take(atMostTimes: number | null): Promise<void> {
    const { user, system } = process.cpuUsage(this.#startCpu);
    const workMs = Math.min(performance.now() - this.#startMs, (WITH_POSTGRES * (user + system)) / 1000);
    this.#owedMs = Math.min(this.#owedMs + this.#times * workMs, REST_MAX_MS);
    const mostMs = atMostTimes === null ? this.#owedMs : Math.min(this.#owedMs, atMostTimes * workMs);
    const restMs = Math.max(0, mostMs);
    const fromMs = performance.now();
    await this.#rest(restMs);
    this.#owedMs = Math.max(this.#owedMs - Math.max(restMs, performance.now() - fromMs), -CREDIT_MAX_MS);
    this.#beginPart();
  }

  #beginPart(): void {
    this.#startMs = performance.now();
    this.#startCpu = process.cpuUsage();
  }
}
