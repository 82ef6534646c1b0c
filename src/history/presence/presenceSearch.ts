import type { Device } from '../../devices/device.ts';
import type { Fleet } from '../../devices/fleet.memory.ts';
import type { ProcessorBudget, Steps, WorkTurns } from '../../lib/workTurns.ts';
import type { Sql } from '../../postgres/sql.ts';
import { unpackRowIf } from '../packedRows.sql.ts';
import { PACKED_ROWS_AT_A_TIME, selectPackedStretches } from '../packedStretches.sql.ts';
import { type PlaceSpan, selectPlaceSpans } from '../placeSpans.sql.ts';
import { DeviceGone, pointPages, type TimeWindow } from '../pointPages.sql.ts';
import { pointsIn, type Stretch } from '../stretches.sql.ts';
import type { HistoryReader } from '../summary/summarizeHistory.ts';
import { type Place, PRESENCE_GAP_MS, type Presence, PresenceTally } from './presence.ts';

/** Points that are read for one answer at most. */
export const PRESENCE_POINTS_MAX = 20_000_000;
/** Devices whose boxes are asked for at a time: with a box for each of 31 days these are read in a few milliseconds. */
const DEVICES_PER_READ = 1_000;
/** So many more than the wanted devices are kept before the later ones are left out. */
const KEPT_BEYOND = 1_000;
/** Points are read for as many answers of Postgres at a time as an account has connections. */
const READS_AT_A_TIME = 2;
/** Before every IMEI. */
const BEFORE_ALL = '0';

export interface PresencePorts {
  readonly reads: (accountId: number) => Sql;
  readonly fleet: Fleet;
  /** By account. */
  readonly turns: WorkTurns<string | number>;
}

export interface PresentDevice extends Presence {
  readonly device: Device;
}

export interface FoundPresence {
  /** By their first point there, then by IMEI: as many as are wanted. */
  readonly devices: readonly PresentDevice[];
  /** How many devices were there. */
  readonly total: number;
}

export type PresenceOutcome = FoundPresence | 'too_many_points' | 'too_much_work' | 'left';

interface SelectedSpans {
  readonly lastImei: string;
  readonly byId: ReadonlyMap<number, Device>;
  readonly spans: readonly PlaceSpan[];
}

/**
 * One call. Boxes choose what is read: those of packed days, and for other points their rows. Rejects with what ends its
 * budget.
 */
export class PresenceSearch {
  readonly #ports: PresencePorts;
  readonly #reader: HistoryReader;
  readonly #place: Place;
  readonly #window: TimeWindow;
  readonly #limit: number;
  readonly #budget: ProcessorBudget;
  /** True: nobody waits for the answer. Throws when it takes too long. */
  readonly #isOver: () => boolean;
  #found: PresentDevice[] = [];
  #total = 0;
  #points = 0;
  #hasEnded = false;

  constructor(
    ports: PresencePorts,
    reader: HistoryReader,
    place: Place,
    window: TimeWindow,
    limit: number,
    budget: ProcessorBudget,
    isOver: () => boolean,
  ) {
    this.#ports = ports;
    this.#reader = reader;
    this.#place = place;
    this.#window = window;
    this.#limit = limit;
    this.#budget = budget;
    this.#isOver = isOver;
  }

  async run(): Promise<PresenceOutcome> {
    let next = this.#select(BEFORE_ALL);
    for (;;) {
      const selected = await next;
      if (selected === null) return { devices: this.#earliest(), total: this.#total };
      const { lastImei, byId, spans } = selected;
      // Beside what follows. Whoever waits for it still gets its error.
      next = this.#select(lastImei);
      next.catch(() => undefined);
      const batches = batchesOf(spans);
      await Promise.all(Array.from({ length: READS_AT_A_TIME }, () => this.#tallyNext(batches, byId)));
      if (this.#points > PRESENCE_POINTS_MAX) return 'too_many_points';
      if (this.#isOver()) return 'left';
    }
  }

  /** What is to be read of the next devices; null after the last. */
  async #select(afterImei: string): Promise<SelectedSpans | null> {
    const { reads, fleet } = this.#ports;
    const { accountId, worldIds } = this.#reader;
    const devices = fleet.listed(worldIds, afterImei, DEVICES_PER_READ).map(({ device }) => device);
    const last = devices.at(-1);
    if (last === undefined) return null;
    const byId = new Map(devices.map((device) => [device.fields.id, device]));
    const { boxes } = this.#place;
    const ids = [...byId.keys()];
    const spans = await selectPlaceSpans(reads(accountId), ids, boxes, this.#window, PRESENCE_GAP_MS);
    return { lastImei: last.fields.imei, byId, spans };
  }

  /** Takes one batch after the other, beside others of the same search: points of one are read while others count. */
  async #tallyNext(batches: Iterator<PresenceBatch>, byId: ReadonlyMap<number, Device>): Promise<void> {
    while (!this.#hasEnded) {
      const next = batches.next();
      if (next.done === true) return;
      try {
        await this.#tallyBatch(next.value, byId);
      } catch (error) {
        this.#hasEnded = true;
        throw error;
      }
    }
  }

  async #tallyBatch({ devices, isPacked }: PresenceBatch, byId: ReadonlyMap<number, Device>): Promise<void> {
    const { reads } = this.#ports;
    const { accountId, worldIds } = this.#reader;
    const spans = devices.flatMap((each) => each.spans);
    const stretches = isPacked ? await selectPackedStretches(reads(accountId), worldIds, spans) : [];
    let at = 0;
    for (const { deviceId, spans: own } of devices) {
      this.#hasEnded ||= this.#isOver() || this.#points > PRESENCE_POINTS_MAX;
      if (this.#hasEnded) return;
      const packed = stretches.slice(at, at + own.length).filter((stretch) => stretch !== null);
      at += own.length;
      const tally = new PresenceTally(this.#place);
      if (packed.length === own.length) await this.#tallyPacked(tally, packed);
      else await this.#tallyPages(tally, deviceId, own);
      this.#keep(byId.get(deviceId) as Device, tally);
    }
  }

  async #tallyPacked(tally: PresenceTally, stretches: readonly Stretch[]): Promise<void> {
    this.#points += await this.#inTurns(tallyPacked(tally, stretches));
  }

  #inTurns<T>(steps: Steps<T>): Promise<T> {
    return this.#ports.turns.run(this.#reader.accountId, this.#budget.spend(steps));
  }

  /** Page by page: there may be many rows. */
  async #tallyPages(tally: PresenceTally, deviceId: number, spans: readonly PlaceSpan[]): Promise<void> {
    const { reads } = this.#ports;
    const { accountId, worldIds } = this.#reader;
    try {
      for (const span of spans) {
        tally.interrupt();
        for await (const page of pointPages(reads(accountId), worldIds, deviceId, span, 'place')) {
          await this.#inTurns(tally.take(page));
          this.#points += page.count;
          if (this.#points > PRESENCE_POINTS_MAX) return;
        }
      }
    } catch (error) {
      // It has left what the caller sees, with its history.
      if (!(error instanceof DeviceGone)) throw error;
    }
  }

  #keep(device: Device, { presence }: PresenceTally): void {
    if (presence === null) return;
    this.#total++;
    if (this.#found.push({ device, ...presence }) > this.#limit + KEPT_BEYOND) this.#found = this.#earliest();
  }

  #earliest(): PresentDevice[] {
    return this.#found.sort(byFirstPoint).slice(0, this.#limit);
  }
}

function byFirstPoint(a: PresentDevice, b: PresentDevice): number {
  return a.firstMs - b.firstMs || (a.device.fields.imei < b.device.fields.imei ? -1 : 1);
}

/**
 * Takes stretches of a device whose points are all packed. Returns how many points there are. A step unpacks one row. Throws
 * DamagedPoints.
 */
export function* tallyPacked(tally: PresenceTally, stretches: readonly Stretch[]): Steps<number> {
  let count = 0;
  for (const stretch of stretches) {
    tally.interrupt();
    for (const row of stretch.packed) {
      const columns = unpackRowIf(row, (lats, lngs) => tally.wants(lats, lngs));
      if (columns === null) tally.interrupt();
      else yield* tally.take(pointsIn(columns, stretch, 'place'));
      count += row.count;
      yield;
    }
  }
  return count;
}

/** What is to be read of one device. */
interface DeviceSpans {
  readonly deviceId: number;
  readonly spans: readonly PlaceSpan[];
}

/** Devices whose points are read by one statement, or one whose points are read page by page. */
interface PresenceBatch {
  readonly devices: readonly DeviceSpans[];
  /** Every span is of packed points, and they are not too many for one statement. */
  readonly isPacked: boolean;
}

/** Puts devices with few rows of packed points together. Spans come by device. */
function* batchesOf(spans: readonly PlaceSpan[]): Generator<PresenceBatch, void, undefined> {
  let devices: DeviceSpans[] = [];
  let rows = 0;
  for (const [deviceId, own] of Map.groupBy(spans, (span) => span.deviceId)) {
    const added = packedRowsOf(own);
    if (added > PACKED_ROWS_AT_A_TIME) {
      yield { devices: [{ deviceId, spans: own }], isPacked: false };
      continue;
    }
    if (rows + added > PACKED_ROWS_AT_A_TIME) {
      yield { devices, isPacked: true };
      devices = [];
      rows = 0;
    }
    devices.push({ deviceId, spans: own });
    rows += added;
  }
  if (devices.length > 0) yield { devices, isPacked: true };
}

/** Infinity where some of the points are rows: nobody knows how many they are. */
function packedRowsOf(spans: readonly PlaceSpan[]): number {
  return spans.reduce((sum, { packedRows }) => sum + (packedRows || Number.POSITIVE_INFINITY), 0);
}
