import type { Clock } from '../base/clock.ts';
import { MAX_POINTS } from '../engine/batchReader.ts';
import type { BatchEntry } from '../engine/evaluateBatch.ts';
import type { Fix } from '../engine/fix.ts';
import { selectDevicesByImei } from '../store/deviceRows.ts';
import { ensureWeeks, POSITIONS, weekStartMs } from '../store/partitions.ts';
import type { Sql } from '../store/sql.ts';
import { isUnavailable } from '../store/sql.ts';
import { type CommitPorts, commitFixes, type FixOutcome } from './commitFixes.ts';

/** How many transactions of this pod may be open at once: one waits for the disk while the next is prepared. */
const TRANSACTIONS_MAX = 3;
/** Points waiting for a transaction beyond this are refused as overload, so that memory stays bounded. */
const WAITING_POINTS_MAX = 200_000;

export interface IngestPorts {
  readonly sql: Sql;
  readonly memory: CommitPorts['memory'];
  readonly follower: CommitPorts['follower'];
  readonly instanceId: string;
  readonly clock: Clock;
  /** Called after each commit that moved devices, when this pod's memory already knows. */
  readonly onMoved: () => void;
  /** Called after each commit that queued deliveries for these endpoints. */
  readonly onQueued: (webhookIds: readonly number[]) => void;
  /** Called after each commit that left deliveries in the outbox. */
  readonly onOutboxFilled: () => void;
  readonly onOutcomes: (outcomes: readonly FixOutcome[], eventCount: number) => void;
}

/** Too many points are waiting for the database; nothing was stored. */
export class IngestOverload extends Error {
  override name = 'IngestOverload';
}

interface Job {
  readonly fixes: readonly Fix[];
  readonly resolve: (outcomes: FixOutcome[]) => void;
  readonly reject: (error: unknown) => void;
}

/**
 * Takes points to the database and into memory. Requests that arrive while transactions are open share the next
 * one (group commit), so many small requests cost little more than one large one. The promise of `store` settles
 * after the commit, with one outcome for each fix in order.
 */
export class Ingest {
  readonly #ports: IngestPorts;
  readonly #knownWeeks = new Set<number>();
  #waiting: Job[] = [];
  #waitingPoints = 0;
  #open = 0;
  /** Devices with points in an open transaction. A later point of theirs waits, so it never overtakes. */
  readonly #busyImeis = new Set<string>();

  constructor(ports: IngestPorts) {
    this.#ports = ports;
  }

  get waitingPoints(): number {
    return this.#waitingPoints;
  }

  store(fixes: readonly Fix[]): Promise<FixOutcome[]> {
    if (fixes.length === 0) return Promise.resolve([]);
    if (this.#waitingPoints + fixes.length > WAITING_POINTS_MAX) {
      return Promise.reject(new IngestOverload('too many points are waiting for the database'));
    }
    return new Promise((resolve, reject) => {
      this.#waiting.push({ fixes, resolve, reject });
      this.#waitingPoints += fixes.length;
      this.#start();
    });
  }

  #start(): void {
    while (this.#open < TRANSACTIONS_MAX) {
      const jobs = this.#takeJobs();
      if (jobs.length === 0) return;
      const imeis = new Set(jobs.flatMap((job) => job.fixes.map((fix) => fix.imei)));
      for (const imei of imeis) this.#busyImeis.add(imei);
      this.#open++;
      this.#run(jobs).finally(() => {
        for (const imei of imeis) this.#busyImeis.delete(imei);
        this.#open--;
        this.#start();
      });
    }
  }

  /** The waiting requests, in order, that fit into one transaction and touch no device of an open one. */
  #takeJobs(): Job[] {
    let points = 0;
    let count = 0;
    for (const job of this.#waiting) {
      if (count > 0 && points + job.fixes.length > MAX_POINTS) break;
      if (job.fixes.some((fix) => this.#busyImeis.has(fix.imei))) break;
      points += job.fixes.length;
      count++;
    }
    this.#waitingPoints -= points;
    return this.#waiting.splice(0, count);
  }

  /** Never rejects: whatever happens is told to the requests. */
  async #run(jobs: readonly Job[]): Promise<void> {
    try {
      const outcomes = await this.#commit(jobs.flatMap((job) => job.fixes));
      let at = 0;
      for (const job of jobs) {
        job.resolve(outcomes.slice(at, at + job.fixes.length));
        at += job.fixes.length;
      }
    } catch (error) {
      if (jobs.length === 1 || isUnavailable(error)) {
        for (const job of jobs) job.reject(error);
        return;
      }
      // Something in the shared transaction failed: one request must not cost the others theirs.
      for (const job of jobs) await this.#run([job]);
    }
  }

  async #commit(fixes: readonly Fix[]): Promise<FixOutcome[]> {
    const { memory, clock } = this.#ports;
    const { fleet } = memory;
    await this.#loadUnknownDevices(fixes);
    await this.#ensurePartitions(fixes);
    const outcomes = fixes.map((): FixOutcome => 'unknown_device');
    const places: number[] = [];
    const entries: BatchEntry[] = [];
    fixes.forEach((fix, n) => {
      const device = fleet.anyDevice(fix.imei);
      if (device === undefined) return;
      places.push(n);
      entries.push({ deviceId: device.fields.id, fix });
    });
    if (entries.length > 0) {
      const committed = await commitFixes(this.#ports, entries, clock());
      for (const { deviceId, position } of committed.moves) fleet.move(deviceId, position);
      if (committed.moves.length > 0) this.#ports.onMoved();
      if (committed.queuedFor.length > 0) this.#ports.onQueued(committed.queuedFor);
      if (committed.isOutboxFilled) this.#ports.onOutboxFilled();
      committed.outcomes.forEach((outcome, i) => {
        outcomes[places[i] as number] = outcome;
      });
      this.#ports.onOutcomes(outcomes, committed.eventCount);
    } else {
      this.#ports.onOutcomes(outcomes, 0);
    }
    return outcomes;
  }

  /** A device may have been created elsewhere a moment ago: nobody is called unknown before Postgres said so. */
  async #loadUnknownDevices(fixes: readonly Fix[]): Promise<void> {
    const { sql, memory } = this.#ports;
    const { fleet } = memory;
    const unknown = new Set<string>();
    for (const fix of fixes) if (fleet.anyDevice(fix.imei) === undefined) unknown.add(fix.imei);
    if (unknown.size === 0) return;
    for (const { fields, position } of await selectDevicesByImei(sql, [...unknown])) {
      fleet.putDevice(fields);
      if (position !== null) fleet.move(fields.id, position);
    }
  }

  async #ensurePartitions(fixes: readonly Fix[]): Promise<void> {
    const missing = new Set<number>();
    for (const fix of fixes) {
      const mondayMs = weekStartMs(fix.recordedAtMs);
      if (!this.#knownWeeks.has(mondayMs)) missing.add(mondayMs);
    }
    if (missing.size === 0) return;
    await ensureWeeks(this.#ports.sql, POSITIONS, [...missing]);
    for (const mondayMs of missing) this.#knownWeeks.add(mondayMs);
  }
}
