import { deleteArea, insertArea, moveArea, updateArea } from '../../src/areas/areas.sql.ts';
import { toShape } from '../../src/areas/shape.ts';
import { recordChange } from '../../src/changelog/changes.sql.ts';
import type { Memory } from '../../src/coherence/applyChanges.ts';
import { insertDevices } from '../../src/devices/devices.sql.ts';
import { packStays } from '../../src/devices/stays/packedStays.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import type { Sql } from '../../src/postgres/sql.ts';
import { CIRCLE, POLYGON, validArea } from '../support/http/areas.ts';
import { seededRandom } from '../support/seededRandom.ts';

export const IMEIS = Array.from({ length: 10 }, (_, n) => `35000000000000${n}`);

/** Of transactions that only a lost history has. */
const LOST_XIDS = [5, 1_000_000_000];
const LOST_REVISION = 500;
const NO_NAMES = { name: null, plate: null, model: null, groups: [] };

/** Seeded changes of a database with some accounts, and of a memory that follows it. */
export class RandomChanges {
  readonly #sql: Sql;
  readonly #worldIds: readonly number[];
  readonly #random: () => number;
  /** When the next point is recorded; later than all before. */
  #nextMs: number;

  constructor(sql: Sql, worldIds: readonly number[], seed: number, nextMs: number) {
    this.#sql = sql;
    this.#worldIds = worldIds;
    this.#random = seededRandom(seed);
    this.#nextMs = nextMs;
  }

  below(count: number): number {
    return Math.floor(this.#random() * count);
  }

  of<T>(values: readonly T[]): T {
    return values[this.below(values.length)] as T;
  }

  nextMs(): number {
    this.#nextMs += 1_000;
    return this.#nextMs;
  }

  /** Changes something in Postgres without a word in the change log. `isOther`: as only another history can be. */
  async changePostgres(isOther: boolean): Promise<void> {
    const sql = this.#sql;
    const imei = this.of(IMEIS);
    const worldId = this.of(this.#worldIds);
    const editedAt = isOther
      ? sql`updated_at - interval '1 s'`
      : sql`greatest(clock_timestamp(), updated_at + interval '1 ms')`;
    const revision = isOther ? sql`revision - least(revision, 3)` : sql`revision + 1`;
    const ofDevice = sql`device_id = (select id from device where imei = ${imei})`;
    const nextMs = this.nextMs();
    const at = new Date(isOther && this.below(2) === 0 ? nextMs - 600_000 : nextMs).toISOString();
    switch (this.below(9)) {
      case 0:
        await sql`update device set name = ${`n${this.below(99)}`}, updated_at = ${editedAt} where imei = ${imei}`;
        return;
      case 1:
        await sql`update device set world_id = ${worldId}, updated_at = ${editedAt} where imei = ${imei}`;
        return;
      case 2:
        return this.#deleteDevice(imei);
      case 3:
        if ((await sql`select 1 from device where imei = ${imei}`).length > 0) return;
        await sql.begin((tx) => insertDevices(tx, [{ imei, worldId, ...NO_NAMES }]));
        return;
      case 4:
      case 5:
        await sql`
          update device_state set recorded_at = ${at}, latitude = ${this.below(80)}, longitude = ${this.below(80)},
            altitude_m = 1, speed_kmh = 2, heading = 3, moved_at = ${at}, revision = ${revision},
            ignition = ${this.of([null, true, false])}, odometer_km = ${this.of([null, 7])}
          where ${ofDevice}`;
        return;
      case 6: {
        const areas = await sql<{ id: number }[]>`select id from area order by id`;
        const ids = areas.map(({ id }) => id).filter(() => this.below(2) === 0);
        const stays = JSON.stringify(ids.map((id) => [id, 1_000, this.of([null, 2_000])]));
        await sql`
          update device_state set stays = ${stays}, revision = ${revision}
          where recorded_at is not null and ${ofDevice}`;
        return;
      }
      case 7:
        return this.#changeArea(worldId, isOther);
      default:
        await sql`
          update account set organization_id = case when organization_id is null then (select id from organization) end
          where world_id = ${worldId}`;
        await sql`update world set version = version + 1 where id = ${worldId}`;
        if (!isOther) return;
        await sql`
          update device_state set recorded_at = null, latitude = null, longitude = null, moved_at = null, stays = '[]'
          where ${ofDevice}`;
    }
  }

  async #changeArea(worldId: number, isOther: boolean): Promise<void> {
    const sql = this.#sql;
    const areas = await sql<{ id: number }[]>`select id from area order by id`;
    const accounts = await sql<{ id: number; worldId: number }[]>`
      select id, world_id as "worldId" from account order by id`;
    const { id: accountId, worldId: ofAccount } = this.of(accounts);
    const { definition, measures } = validArea({
      ...this.of([CIRCLE, POLYGON]),
      external_id: `x${this.below(4)}`,
    });
    const resized = validArea({ ...CIRCLE, radius_m: 100 + this.below(99) });
    const { id } = this.of(areas) ?? { id: 0 };
    const kind = id === 0 ? 0 : this.below(isOther ? 5 : 4);
    await sql.begin(async (tx) => {
      if (kind === 0) await insertArea(tx, { worldId: ofAccount, accountId }, definition, measures);
      else if (kind === 1) await updateArea(tx, id, resized.definition, resized.measures);
      else if (kind === 2) await moveArea(tx, id, worldId);
      else if (kind === 3) await deleteArea(tx, this.#worldIds, id);
      else await tx`update area set name = 'of the same revision' where id = ${id}`;
    });
  }

  async #deleteDevice(imei: string): Promise<void> {
    await this.#sql.begin(async (tx) => {
      await tx`delete from device_state where device_id = (select id from device where imei = ${imei})`;
      await tx`delete from device where imei = ${imei}`;
    });
  }

  /** Moves a device to another world, as a command does. */
  async moveDevice(): Promise<void> {
    const [imei, worldId] = [this.of(IMEIS), this.of(this.#worldIds)];
    await this.#sql.begin(async (tx) => {
      const [moved] = await tx<{ id: number }[]>`
        update device set world_id = ${worldId}, updated_at = clock_timestamp() where imei = ${imei} returning id`;
      if (moved !== undefined) await recordChange(tx, { kind: 'device', worldId, entityIds: [moved.id] });
    });
  }

  /** Makes a device, as a command does. */
  async createDevice(imei: string): Promise<void> {
    const worldId = this.of(this.#worldIds);
    await this.#sql.begin(async (tx) => {
      const [created] = await insertDevices(tx, [{ imei, worldId, ...NO_NAMES }]);
      await recordChange(tx, { kind: 'device', worldId, entityIds: [created?.id ?? 0] });
    });
  }

  /** Brings something into memory that only a lost history had. */
  changeMemory({ fleet, areas, tenancy, subscriptions }: Memory): void {
    const imei = this.of(IMEIS);
    const worldId = this.of(this.#worldIds);
    const device = fleet.anyDevice(imei);
    const area = areas.page(this.#worldIds, null, 0, 1)[0];
    const lostMs = this.#nextMs + 10_000_000;
    const xid = this.of(LOST_XIDS);
    switch (this.below(6)) {
      case 0:
        if (device === undefined) return;
        fleet.putDevice({ ...device.fields, worldId, name: 'lost', editedAtMs: lostMs }, xid);
        return;
      case 1: {
        if (device === undefined) return;
        const place = { lat: 1, lng: 1, altitudeM: 0, speedKmh: 0, odometerKm: null };
        const motion = { headingDeg: 1, ignition: true, revision: LOST_REVISION, xid };
        fleet.move(device.id, { ...place, recordedAtMs: lostMs, movedAtMs: lostMs }, motion);
        const stays = packStays([{ areaId: area?.id ?? 9, insideSinceMs: 1, confirmedAtMs: null }]);
        inOneGo(fleet.putStays(device.id, stays, LOST_REVISION));
        return;
      }
      case 2:
        if (device === undefined) return;
        fleet.putRemoval(device.fields.worldId, { deviceId: device.id, imei, xid, atMs: 0 }, true);
        return;
      case 3:
        if (area === undefined) return;
        areas.put({ ...area, definition: { ...area.definition, name: 'lost', externalId: 'lost' } });
        return;
      case 4: {
        const { definition, measures } = validArea(POLYGON);
        const shape = toShape(definition.geometry);
        const id = (area?.id ?? 0) + 1 + this.below(3);
        areas.put({ id, worldId, accountId: 99, definition, measures, createdAtMs: 0, revision: 1, shape });
        return;
      }
      default:
        if (area !== undefined) areas.remove(area.id);
        fleet.raiseVersion(this.of([...this.#worldIds, 900]), 10_000);
        tenancy.putAccount(900 + this.below(2), 950, worldId);
        subscriptions.put({ id: 900, worldId, events: ['*'] });
    }
  }

  /** The lost history and that of Postgres give an id to two devices. */
  async giveIdTwice({ fleet }: Memory, id: number): Promise<void> {
    const worldId = this.of(this.#worldIds);
    const [lost, present] = [this.of(IMEIS.slice(0, 5)), this.of(IMEIS.slice(5))];
    for (const imei of [lost, present]) {
      await this.#deleteDevice(imei);
      const device = fleet.anyDevice(imei);
      if (device === undefined) continue;
      fleet.putRemoval(device.fields.worldId, { deviceId: device.id, imei, xid: 5, atMs: 0 }, true);
    }
    fleet.putDevice({ id, imei: lost, worldId, ...NO_NAMES, editedAtMs: this.#nextMs }, 5);
    await this.#sql`
      with created as (
        insert into device (id, imei, world_id) overriding system value values (${id}, ${present}, ${worldId})
        returning id
      ) insert into device_state (device_id) select id from created`;
  }
}
