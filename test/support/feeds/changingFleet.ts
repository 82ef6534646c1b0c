import { fieldsOf, imeiOf, positionAt } from '../devices.ts';
import { anyPlace, NOW_MS, oneOf, type Random } from '../filteredFleet.ts';
import { type MemoryFeed, WORLD } from './memoryFeed.ts';

const MINUTE_MS = 60_000;
/** A world of the organization, beside that of the account. */
export const SHARED_WORLD = 8;
const FOREIGN_WORLD = 9;

/** Devices of two worlds and of a third one, which move, are edited, deleted and made again, and go from world to world. */
export class ChangingFleet {
  nowMs = NOW_MS;
  readonly #memory: MemoryFeed;
  readonly #random: Random;
  readonly #devices: number;
  #nextId = 1;
  #edits = 0;
  readonly #ids = new Map<string, number>();

  constructor(memory: MemoryFeed, random: Random, devices: number) {
    this.#memory = memory;
    this.#random = random;
    this.#devices = devices;
    for (let n = 0; n < devices; n++) this.change(imeiOf(n));
  }

  get anyImei(): string {
    return imeiOf(Math.floor(this.#random() * this.#devices));
  }

  /** A device is made, edited or moved, or goes to another world. */
  change(imei: string): void {
    const random = this.#random;
    this.#memory.change((xid) => {
      const id = this.#ids.get(imei) ?? this.#nextId++;
      const { fleet } = this.#memory;
      if (!this.#ids.has(imei) || random() < 0.2) {
        const groups = oneOf(random, [[], ['north'], ['north', 'vans'], ['vans'], ['rare']]);
        const worldId = oneOf(random, [WORLD, WORLD, SHARED_WORLD, FOREIGN_WORLD]);
        fleet.putDevice(fieldsOf({ id, imei, worldId, groups, editedAtMs: ++this.#edits }), xid);
      }
      this.#ids.set(imei, id);
      if (random() < 0.2) return;
      const { lat, lng } = anyPlace(random);
      const recordedAtMs =
        this.nowMs - oneOf(random, [-1_000, 0, 0, 0, 59_000, 9 * MINUTE_MS, 3_000 * MINUTE_MS]);
      const position = positionAt(lat, lng, recordedAtMs, {
        speedKmh: oneOf(random, [0, 80]),
        movedAtMs: this.nowMs,
      });
      fleet.move(id, position, { headingDeg: 0, ignition: null, revision: xid, xid });
    });
  }

  delete(imei: string): void {
    const id = this.#ids.get(imei);
    if (id === undefined) return;
    this.#memory.change((xid) => {
      const { fleet } = this.#memory;
      const worldId = fleet.worldOf(imei) as number;
      fleet.putRemoval(worldId, { deviceId: id, imei, xid, atMs: this.nowMs }, true);
    });
    this.#ids.delete(imei);
  }

  pass(ms: number): void {
    this.nowMs += ms;
    this.#memory.pass(ms);
  }
}
