import type { DeliverySchedule } from '../queue/deliverySchedule.ts';
import { countWaiting, selectDueLanes } from '../store/dueLanes.ts';
import { isUnavailable } from '../store/sql.ts';
import { deliverLane, type LanePorts } from './deliverLane.ts';

/** Endpoints sent to at once by one pod: far more than one owner has, whose receivers may all hang. */
const LANES_MAX = 256;
/** How often the schedule is asked when nobody wakes us, and told again what Postgres knows. */
const POLL_MS = 100;
const SWEEP_MS = 5_000;
/** A turn that failed is tried again after this. */
const FAILED_RETRY_MS = 1_000;
/** A backlog is spoken of in the log when it is larger than this. */
const LONG_BACKLOG = 1_000;

export interface DeliveryPorts extends Omit<LanePorts, 'isStopping'> {
  readonly schedule: DeliverySchedule;
  readonly log: { info(fields: object, message: string): void; warn(fields: object, message: string): void };
  readonly onSweep: (backlog: { waiting: number; oldestDueMs: number }, durationMs: number) => void;
}

/** The lanes of this pod: takes endpoints that are due from the schedule and gives each a turn, many side by side. */
export class DeliveryWorkers {
  readonly #ports: DeliveryPorts;
  readonly #running = new Map<number, Promise<void>>();
  /** Endpoints woken during their turn here: what woke them may have come too late for it. */
  readonly #again = new Set<number>();
  #taking = false;
  #timers: NodeJS.Timeout[] = [];
  #sweeping: Promise<void> | null = null;
  #isStopping = false;
  #failing = false;

  constructor(ports: DeliveryPorts) {
    this.#ports = ports;
  }

  start(): void {
    this.#sweepOnce();
    this.#timers = [setInterval(() => this.poke(), POLL_MS), setInterval(() => this.#sweepOnce(), SWEEP_MS)];
  }

  /** Begins no further attempt and waits for those in flight: ten seconds at most. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    for (const timer of this.#timers) clearInterval(timer);
    await Promise.all([this.#sweeping, ...this.#running.values()]);
  }

  /** Looks for endpoints that are due. */
  poke(): void {
    if (this.#taking || this.#isStopping || this.#running.size >= LANES_MAX) return;
    this.#taking = true;
    void this.#take().finally(() => {
      this.#taking = false;
    });
  }

  async #take(): Promise<void> {
    const due = await this.#ports.schedule.take(LANES_MAX - this.#running.size);
    for (const webhookId of due) {
      if (this.#running.has(webhookId)) this.#again.add(webhookId);
      // This pod begins no more: whoever looks next may have it.
      else if (this.#isStopping) await this.#ports.schedule.add(webhookId, 0);
      else this.#running.set(webhookId, this.#run(webhookId));
    }
  }

  /** Never rejects: what fails is tried again, by whoever takes it from the schedule. */
  async #run(webhookId: number): Promise<void> {
    const { schedule, log } = this.#ports;
    let againInMs: number | null = null;
    try {
      againInMs = await deliverLane({ ...this.#ports, isStopping: () => this.#isStopping }, webhookId);
    } catch (error) {
      againInMs = FAILED_RETRY_MS;
      const fields = isUnavailable(error) ? {} : { err: error };
      log.warn({ webhook_id: webhookId, ...fields }, 'a turn of deliveries failed; trying again');
    }
    this.#running.delete(webhookId);
    if (this.#again.delete(webhookId)) againInMs = 0;
    if (againInMs !== null) await schedule.add(webhookId, againInMs);
    if (againInMs === 0) this.poke();
  }

  /** A sweep that Postgres keeps waiting is not joined by others. */
  #sweepOnce(): void {
    this.#sweeping ??= this.#sweep().finally(() => {
      this.#sweeping = null;
    });
  }

  async #sweep(): Promise<void> {
    const { sql, schedule, log, onSweep } = this.#ports;
    const startedAtMs = performance.now();
    try {
      const due = await selectDueLanes(sql, 0, 1000);
      for (const { webhookId, dueInMs } of due.lanes) await schedule.add(webhookId, dueInMs);
      const backlog = { waiting: await countWaiting(sql, 10_000), oldestDueMs: due.oldestDueMs };
      onSweep(backlog, performance.now() - startedAtMs);
      if (backlog.waiting > LONG_BACKLOG) log.info(backlog, 'deliveries waiting');
      this.#failing = false;
    } catch (error) {
      if (!this.#failing)
        log.warn(isUnavailable(error) ? {} : { err: error }, 'the delivery schedule cannot be rebuilt');
      this.#failing = true;
    }
    this.poke();
  }
}
