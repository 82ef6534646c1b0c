import { setTimeout as sleep } from 'node:timers/promises';
import { recordChange } from '../../../src/changelog/changes.sql.ts';
import { deleteDeviceRows } from '../../../src/devices/devices.sql.ts';
import { arrayLiteral, type Sql, type Tx } from '../../../src/postgres/sql.ts';
import { isUnavailable } from '../../../src/postgres/sqlErrors.ts';

/** How long a transaction stays open at most: much longer than those of points. */
const OPEN_MAX_MS = 300;
const RETRY_MS = 20;
const GROUPS = ['north', 'vans'];

/** Devices that only one writer writes to. */
export interface OwnDevices {
  /** It exists all the time, and moves between the worlds. */
  readonly moving: string;
  /** It is made and deleted. */
  readonly fleeting: string;
}

/**
 * Writes in transactions that stay open for a while, so that they commit in another order than they began, and rolls some
 * of them back: events, edits of names and groups, moves to another world and back, new devices and deletions.
 */
export class LateWriter {
  readonly #sql: Sql;
  readonly #worldIds: readonly [number, number];
  readonly #own: OwnDevices;
  readonly #random: () => number;
  #isOver = false;
  #names: number;

  /** `names`: how many names were given before. */
  constructor(
    sql: Sql,
    worldIds: readonly [number, number],
    own: OwnDevices,
    random: () => number,
    names: number,
  ) {
    this.#sql = sql;
    this.#worldIds = worldIds;
    this.#own = own;
    this.#random = random;
    this.#names = names;
  }

  stop(): void {
    this.#isOver = true;
  }

  async run(): Promise<void> {
    while (!this.#isOver) {
      try {
        await this.#sql.begin(async (tx) => {
          await this.#write(tx);
          await sleep(this.#random() ** 2 * OPEN_MAX_MS);
          if (this.#random() < 0.2) throw new GivenUp();
        });
      } catch (error) {
        if (!(error instanceof GivenUp) && !isUnavailable(error)) throw error;
        await sleep(RETRY_MS);
      }
    }
  }

  async #write(tx: Tx): Promise<void> {
    const { moving, fleeting } = this.#own;
    const kind = this.#random();
    if (kind < 0.5) await insertEvent(tx, moving);
    else if (kind < 0.65) await this.#rename(tx, moving);
    else if (kind < 0.8) await this.#move(tx, moving);
    else await this.#makeOrDelete(tx, fleeting);
  }

  async #rename(tx: Tx, imei: string): Promise<void> {
    const [row] = await tx<{ id: number; world_id: number }[]>`
      update device set name = ${this.#nextName()}, groups = ${arrayLiteral(this.#someGroups())}::text[],
        updated_at = clock_timestamp()
      where imei = ${imei} returning id, world_id`;
    if (row !== undefined) await announce(tx, row.world_id, row.id);
  }

  async #move(tx: Tx, imei: string): Promise<void> {
    const [a, b] = this.#worldIds;
    const [row] = await tx<{ id: number }[]>`
      update device set world_id = case world_id when ${a} then ${b}::bigint else ${a}::bigint end,
        name = ${this.#nextName()}, updated_at = clock_timestamp()
      where imei = ${imei} returning id`;
    // In one order, so that two writers do not wait for each other.
    if (row !== undefined) for (const worldId of this.#worldIds) await announce(tx, worldId, row.id);
  }

  async #makeOrDelete(tx: Tx, imei: string): Promise<void> {
    const [present] = await tx<{ id: number; world_id: number }[]>`
      select id, world_id from device where imei = ${imei} for update`;
    if (present !== undefined) {
      await deleteDeviceRows(tx, present.id);
      await announce(tx, present.world_id, present.id);
      return;
    }
    const worldId = this.#worldIds[this.#random() < 0.5 ? 0 : 1];
    const [made] = await tx<{ id: number }[]>`
      insert into device (imei, world_id, name, groups)
      values (${imei}, ${worldId}, ${this.#nextName()}, ${arrayLiteral(this.#someGroups())}::text[]) returning id`;
    await tx`insert into device_state (device_id) values (${made?.id ?? 0})`;
    await announce(tx, worldId, made?.id ?? 0);
  }

  #someGroups(): readonly string[] {
    return GROUPS.filter(() => this.#random() < 0.5);
  }

  /** Names rise, so that a reader can tell an older answer from a newer one. */
  #nextName(): string {
    return `v${++this.#names}`;
  }
}

class GivenUp extends Error {}

function announce(tx: Tx, worldId: number, deviceId: number): Promise<number> {
  return recordChange(tx, { kind: 'device', worldId, entityIds: [deviceId] });
}

export async function insertEvent(tx: Tx, imei: string): Promise<void> {
  await tx`
    insert into fleet_event (world_id, device_id, device_imei, type, message, data, occurred_at)
    select world_id, id, imei, 'alarm', 'late', '{"position":{"lat":1,"lng":2},"alarm":"sos"}', now() from device
    where imei = ${imei}`;
}
