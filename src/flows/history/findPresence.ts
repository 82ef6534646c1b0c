import { DeadlineExceeded } from '../../base/deadline.ts';
import { FairSemaphore } from '../../base/fairSemaphore.ts';
import type { WorkTurns } from '../../base/workTurns.ts';
import { type Place, PRESENCE_GAP_MS, type Presence, PresenceTally } from '../../engine/presence/presence.ts';
import type { Device } from '../../memory/device.ts';
import type { Fleet } from '../../memory/fleet.ts';
import { type PlaceSpan, selectPlaceSpans } from '../../store/history/placeSpans.ts';
import { DeviceGone, pointPages, type TimeWindow } from '../../store/history/pointPages.ts';
import type { Sql } from '../../store/sql/sql.ts';
import type { HistoryReader } from './summarizeHistory.ts';

/** Points that are read for one answer at most. */
export const PRESENCE_POINTS_MAX = 20_000_000;
/** Includes the wait for earlier ones of the same account. */
export const PRESENCE_LIMIT_MS = 25_000;
/** Those of one account wait for each other. */
const RUNNING = { running: 64, runningPerKey: 2, waiting: 2_000, waitingPerKey: 50 };
/** Devices whose boxes are asked for at a time: with a box for each of 31 days these are read in a few milliseconds. */
const DEVICES_PER_READ = 200;
/** So many more than the wanted devices are kept before the later ones are left out. */
const KEPT_BEYOND = 1_000;
/** Devices whose points are read at a time: as many as an account has connections. */
const DEVICES_AT_A_TIME = 2;
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

export type PresenceOutcome = FoundPresence | 'too_many_points' | 'left';

/**
 * Finds which devices were at a place in a time. Boxes choose what is read: those of packed days, and for other points
 * their rows. Everything runs in pieces, a few calls of each account at a time.
 */
export class Presences {
  readonly #ports: PresencePorts;
  readonly #running = new FairSemaphore<number>(RUNNING);

  constructor(ports: PresencePorts) {
    this.#ports = ports;
  }

  /** The earliest `limit` devices. Rejects with Overloaded, DeadlineExceeded or DamagedPoints. */
  find(
    reader: HistoryReader,
    place: Place,
    window: TimeWindow,
    limit: number,
    hasLeft: () => boolean,
  ): Promise<PresenceOutcome> {
    const untilMs = performance.now() + PRESENCE_LIMIT_MS;
    const search = new PresenceSearch(this.#ports, reader, place, window, limit, () => {
      if (performance.now() > untilMs) throw new DeadlineExceeded('the presence takes too long');
      return hasLeft();
    });
    return this.#running.run(reader.accountId, () => search.run());
  }
}

/** One call. */
class PresenceSearch {
  readonly #ports: PresencePorts;
  readonly #reader: HistoryReader;
  readonly #place: Place;
  readonly #window: TimeWindow;
  readonly #limit: number;
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
    isOver: () => boolean,
  ) {
    this.#ports = ports;
    this.#reader = reader;
    this.#place = place;
    this.#window = window;
    this.#limit = limit;
    this.#isOver = isOver;
  }

  async run(): Promise<PresenceOutcome> {
    const { reads, fleet } = this.#ports;
    const { accountId, worldIds } = this.#reader;
    let afterImei = BEFORE_ALL;
    for (;;) {
      const devices = fleet.listed(worldIds, afterImei, DEVICES_PER_READ).map(({ device }) => device);
      const last = devices.at(-1);
      if (last === undefined) return { devices: this.#earliest(), total: this.#total };
      afterImei = last.fields.imei;
      const byId = new Map(devices.map((device) => [device.fields.id, device]));
      const spans = await selectPlaceSpans(
        reads(accountId),
        [...byId.keys()],
        this.#place.boxes,
        this.#window,
        PRESENCE_GAP_MS,
      );
      const byDevice = Map.groupBy(spans, (span) => span.deviceId).entries();
      await Promise.all(Array.from({ length: DEVICES_AT_A_TIME }, () => this.#tallyNext(byDevice, byId)));
      if (this.#points > PRESENCE_POINTS_MAX) return 'too_many_points';
      if (this.#isOver()) return 'left';
    }
  }

  /** Takes one device after the other, beside others of the same search: points of one are read while others count. */
  async #tallyNext(
    devices: Iterator<[number, PlaceSpan[]]>,
    byId: ReadonlyMap<number, Device>,
  ): Promise<void> {
    while (!this.#hasEnded) {
      const next = devices.next();
      if (next.done === true) return;
      try {
        this.#hasEnded = this.#isOver() || this.#points > PRESENCE_POINTS_MAX;
        if (!this.#hasEnded) await this.#tally(byId.get(next.value[0]) as Device, next.value[1]);
      } catch (error) {
        this.#hasEnded = true;
        throw error;
      }
    }
  }

  async #tally(device: Device, spans: readonly PlaceSpan[]): Promise<void> {
    const { reads, turns } = this.#ports;
    const { accountId, worldIds } = this.#reader;
    const tally = new PresenceTally(this.#place);
    try {
      for (const span of spans) {
        tally.interrupt();
        for await (const page of pointPages(reads(accountId), worldIds, device.fields.id, span, 'motion')) {
          await turns.run(accountId, tally.take(page));
          this.#points += page.count;
          if (this.#points > PRESENCE_POINTS_MAX) return;
        }
      }
    } catch (error) {
      // It has left what the caller sees, with its history.
      if (error instanceof DeviceGone) return;
      throw error;
    }
    const { presence } = tally;
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
