import { setTimeout as sleep } from 'node:timers/promises';
import type { Clock } from '../base/clock.ts';
import { DeadlineExceeded } from '../base/deadline.ts';
import { MAX_POINTS } from '../engine/batchReader.ts';
import type { BatchEntry } from '../engine/evaluateBatch.ts';
import type { Fix } from '../engine/fix.ts';
import { selectDevicesByImei } from '../store/deviceRows.ts';
import { ensureWeeks, POSITIONS, weekStartMs } from '../store/partitions.ts';
import { isUnavailable } from '../store/sql.ts';
import { selectUnlocked } from '../store/tracks.ts';
import { type CommitPorts, type CommittedFixes, commitFixes, type FixOutcome } from './commitFixes.ts';
import { inTurns } from './inTurns.ts';
import { moveDevices } from './moveDevices.ts';
import { type Part, type PointRequest, WaitingPoints } from './waitingPoints.ts';

/** How many transactions of this pod may be open at once: one waits for the disk while the next is prepared. */
const TRANSACTIONS_MAX = 3;
/** How often it is asked whether devices that were locked elsewhere are free: at first, and when they are not for long. */
const HELD_PAUSE_MS = { first: 5, longest: 40 };
/** Points of a device that stays locked elsewhere are given up after this, as is every request that takes so long. */
const HELD_LIMIT_MS = 15_000;

export interface IngestPorts extends CommitPorts {
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

/**
 * Takes points to the database and into memory. Requests that arrive while transactions are open share the next
 * one (group commit), so many small requests cost little more than one large one. The promise of `store` settles
 * after the commit, with one outcome for each fix in order.
 *
 * The points of one device are stored in the order in which they came, and only they wait for each other: what belongs
 * to a device that is locked elsewhere is left out of its transaction and taken up when it is free, what memory may not
 * judge yet when it may, and a device with thousands of events gets a transaction to itself, one of them at a time. A
 * request is answered after its last part.
 */
export class Ingest {
  readonly #ports: IngestPorts;
  readonly #knownWeeks = new Set<number>();
  readonly #waiting = new WaitingPoints();
  #open = 0;
  #isHeavyOpen = false;
  /** Parts of devices that were locked elsewhere when they were last looked at. */
  #held: Part[] = [];
  #isProbing = false;
  /** Parts of devices that memory could not judge yet. */
  #behind: Part[] = [];
  #isAwaiting = false;

  constructor(ports: IngestPorts) {
    this.#ports = ports;
  }

  get waitingPoints(): number {
    return this.#waiting.count;
  }

  store(fixes: readonly Fix[]): Promise<FixOutcome[]> {
    if (fixes.length === 0) return Promise.resolve([]);
    const { fleet } = this.#ports.memory;
    return new Promise((resolve, reject) => {
      const request: PointRequest = {
        fixes,
        outcomes: fixes.map(() => null),
        arrivedAtMs: performance.now(),
        resolve,
        reject,
        open: 0,
        isRefused: false,
      };
      if (!this.#waiting.add(request, (imei) => fleet.anyDevice(imei)?.fields.worldId ?? 0)) {
        reject(new IngestOverload('too many points are waiting for the database'));
      }
      this.#start();
    });
  }

  #start(): void {
    while (this.#open < TRANSACTIONS_MAX) {
      const heavy = this.#isHeavyOpen ? undefined : this.#waiting.takeHeavy();
      const parts = heavy === undefined ? this.#waiting.take(MAX_POINTS) : [heavy];
      if (parts.length === 0) return;
      this.#open++;
      if (heavy !== undefined) this.#isHeavyOpen = true;
      this.#run(parts, heavy !== undefined).finally(() => {
        this.#open--;
        if (heavy !== undefined) this.#isHeavyOpen = false;
        this.#start();
      });
    }
  }

  /** Never rejects: whatever happens is told to the requests. */
  async #run(parts: readonly Part[], isAlone: boolean): Promise<void> {
    try {
      await this.#commit(parts, isAlone);
    } catch (error) {
      const requests = new Set(parts.map((part) => part.request));
      if (requests.size === 1 || isUnavailable(error)) {
        for (const part of parts) this.#refuse(part, error);
        return;
      }
      // Something in the shared transaction failed: one request must not cost the others theirs.
      for (const request of requests) {
        const own = parts.filter((part) => part.request === request);
        // Behind a part of another request that is still not stored it goes on waiting.
        for (const part of own) if (part.before !== null) this.#waiting.putBack(part, 'ready');
        const first = own.filter((part) => part.before === null);
        if (first.length > 0) await this.#run(first, isAlone);
      }
    }
  }

  #refuse(part: Part, error: unknown): void {
    this.#tellRefused(part.request, error);
    this.#waiting.settle(part);
  }

  async #commit(parts: readonly Part[], isAlone: boolean): Promise<void> {
    const { memory, clock } = this.#ports;
    const { fleet } = memory;
    const fixes: Fix[] = [];
    for (const { request, places } of parts) for (const n of places) fixes.push(request.fixes[n] as Fix);
    await this.#loadUnknownDevices(fixes);
    await this.#ensurePartitions(fixes);
    const entries: BatchEntry[] = [];
    const unknown = new Set<Part>();
    for (const part of parts) {
      const device = fleet.anyDevice(part.imei);
      if (device === undefined) unknown.add(part);
      else
        for (const n of part.places)
          entries.push({ deviceId: device.fields.id, fix: part.request.fixes[n] as Fix });
    }
    const committed = entries.length === 0 ? null : await commitFixes(this.#ports, entries, clock(), isAlone);
    const stored: FixOutcome[] = [];
    let at = 0;
    for (const part of parts) {
      for (const n of part.places) {
        const outcome = unknown.has(part) ? 'unknown_device' : (committed?.outcomes[at++] ?? null);
        part.request.outcomes[n] = outcome;
        if (outcome !== null) stored.push(outcome);
      }
    }
    if (committed !== null) await this.#tell(committed);
    this.#ports.onOutcomes(stored, committed?.eventCount ?? 0);
    for (const part of parts) this.#goOn(part, committed);
  }

  /** Memory is told in turns with the requests: ten thousand devices may have moved. */
  async #tell({ moves, queuedFor, isOutboxFilled }: CommittedFixes): Promise<void> {
    const { memory, turns, onMoved, onQueued, onOutboxFilled } = this.#ports;
    await inTurns(turns, 'moves', moveDevices(memory.fleet, moves));
    if (moves.length > 0) onMoved();
    if (queuedFor.length > 0) onQueued(queuedFor);
    if (isOutboxFilled) onOutboxFilled();
  }

  /** After a commit: a part that was stored makes way for the next of its device, any other goes back. */
  #goOn(part: Part, committed: CommittedFixes | null): void {
    const { request, imei } = part;
    part.places = part.places.filter((n) => request.outcomes[n] === null);
    if (part.places.length === 0) {
      this.#waiting.settle(part);
      request.open--;
      if (request.open === 0) request.resolve(request.outcomes as FixOutcome[]);
      return;
    }
    const deviceId = this.#ports.memory.fleet.anyDevice(imei)?.fields.id ?? 0;
    if (part.before === null && committed?.held.has(deviceId)) {
      this.#waiting.putBack(part, 'held');
      this.#held.push(part);
      void this.#probe();
    } else if (part.before === null && committed?.behind.has(deviceId)) {
      this.#waiting.putBack(part, 'held');
      this.#behind.push(part);
      void this.#awaitMemory();
    } else this.#waiting.putBack(part, committed?.heavy.has(deviceId) ? 'heavy' : 'ready');
  }

  /** Waits until memory holds what devices are judged by. Costs no place. */
  async #awaitMemory(): Promise<void> {
    if (this.#isAwaiting) return;
    this.#isAwaiting = true;
    while (this.#behind.length > 0) {
      const parts = this.#behind;
      this.#behind = [];
      const failure = await this.#ports.follower.catchUp().then(
        () => null,
        (error: unknown) => ({ error }),
      );
      for (const part of parts) {
        if (failure !== null) this.#tellRefused(part.request, failure.error);
        else if (performance.now() - part.request.arrivedAtMs > HELD_LIMIT_MS)
          this.#tellRefused(part.request, new DeadlineExceeded('memory does not catch up'));
        this.#waiting.release(part);
      }
      this.#start();
    }
    this.#isAwaiting = false;
  }

  /** Waits until devices are free that were locked elsewhere. Costs one short statement now and then, and no place. */
  async #probe(): Promise<void> {
    if (this.#isProbing) return;
    this.#isProbing = true;
    for (let pauseMs = HELD_PAUSE_MS.first; this.#held.length > 0; ) {
      await sleep(pauseMs);
      const free = await this.#unlocked();
      const parts = this.#held;
      this.#held = [];
      for (const part of parts) {
        const isLate = performance.now() - part.request.arrivedAtMs > HELD_LIMIT_MS;
        if (isLate) this.#tellRefused(part.request, new DeadlineExceeded('a device stays locked'));
        if (part.request.isRefused || free.has(part.imei)) this.#waiting.release(part);
        else this.#held.push(part);
      }
      const isOneFree = this.#held.length < parts.length;
      pauseMs = isOneFree ? HELD_PAUSE_MS.first : Math.min(2 * pauseMs, HELD_PAUSE_MS.longest);
      this.#start();
    }
    this.#isProbing = false;
  }

  /** The held devices that are free; all of them when Postgres cannot say, for then their transaction tells why. */
  async #unlocked(): Promise<ReadonlySet<string>> {
    const { sql, memory } = this.#ports;
    const imeis = new Map(
      this.#held.map(({ imei }) => [memory.fleet.anyDevice(imei)?.fields.id ?? 0, imei] as const),
    );
    try {
      const ids = await selectUnlocked(sql, [...imeis.keys()]);
      return new Set(ids.map((id) => imeis.get(id) as string));
    } catch {
      return new Set(imeis.values());
    }
  }

  #tellRefused(request: PointRequest, error: unknown): void {
    if (!request.isRefused) request.reject(error);
    request.isRefused = true;
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
