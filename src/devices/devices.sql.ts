import { arrayLiteral, type Sql, type Tx } from '../postgres/sql.ts';
import type { DeviceFields } from './device.ts';
import { wholeXid } from './deviceRows.sql.ts';
import type { Removal } from './worldChanges.memory.ts';

export type StoredDevice = Omit<DeviceFields, 'editedAtMs'>;
/** What an administrator sets. */
export type DeviceDraft = Omit<StoredDevice, 'id'>;

/** The devices with these IMEIs, of any owner, locked for changes until the transaction ends. */
export async function selectDevicesForUpdate(tx: Tx, imeis: readonly string[]): Promise<StoredDevice[]> {
  return await tx<StoredDevice[]>`
    select id, imei, world_id as "worldId", name, plate, device_model as model, groups from device
    where imei = any(${arrayLiteral(imeis)}::text[])
    order by imei for no key update`;
}

/** Adds devices, each with its (empty) state, and returns those whose IMEI was free. */
export async function insertDevices(
  tx: Tx,
  drafts: readonly DeviceDraft[],
): Promise<{ id: number; imei: string; worldId: number }[]> {
  if (drafts.length === 0) return [];
  return await tx<{ id: number; imei: string; worldId: number }[]>`
    with created as (
      insert into device (imei, world_id, name, plate, device_model, groups)
      select imei, world_id, name, plate, device_model, groups from ${recordset(tx, drafts)}
      order by imei
      on conflict (imei) do nothing
      returning id, imei, world_id
    ), state as (
      insert into device_state (device_id) select id from created
    )
    select id, imei, world_id as "worldId" from created`;
}

/**
 * Updates devices that this transaction has locked. The time of the edit rises even when the clock was set back, because
 * pods ignore a row that is older than the one they hold.
 */
export async function updateDevices(tx: Tx, devices: readonly DeviceDraft[]): Promise<void> {
  if (devices.length === 0) return;
  await tx`
    update device d set
      world_id = r.world_id, name = r.name, plate = r.plate, device_model = r.device_model, groups = r.groups,
      updated_at = greatest(clock_timestamp(), d.updated_at + interval '1 millisecond')
    from ${recordset(tx, devices)} where d.imei = r.imei`;
}

/** The drafts as a table `r`. As JSON, because Postgres has no array of arrays of different lengths. */
function recordset(tx: Tx, drafts: readonly DeviceDraft[]) {
  const rows = drafts.map(({ worldId, model, imei, name, plate, groups }) => ({
    imei,
    world_id: worldId,
    name,
    plate,
    device_model: model,
    groups,
  }));
  return tx`jsonb_to_recordset(${JSON.stringify(rows)}::text::jsonb)
    as r(imei text, world_id bigint, name text, plate text, device_model text, groups text[])`;
}

/** A device as the commands list it: its fields as an import file has them, and who owns it. */
export interface ListedDevice {
  readonly imei: string;
  readonly name: string | null;
  readonly plate: string | null;
  readonly device_model: string | null;
  readonly groups: readonly string[];
  /** Whether it is an organization's. */
  readonly organization: boolean;
  /** The address of the account or the name of the organization. */
  readonly owner: string;
}

/** The place of a device in the order of the pages. */
export interface DevicePlace {
  readonly world_id: number;
  readonly imei: string;
}

export const BEFORE_ALL_DEVICES: DevicePlace = { world_id: 0, imei: '' };

/** The devices behind a place, by world and IMEI; of some worlds, or of all (null). */
export function selectDevicePage(
  sql: Sql,
  worldIds: readonly number[] | null,
  after: DevicePlace,
  limit: number,
): Promise<(ListedDevice & DevicePlace)[]> {
  return sql<(ListedDevice & DevicePlace)[]>`
    select d.imei, d.name, d.plate, d.device_model, d.groups, o.id is not null as organization,
           coalesce(o.name, a.email) as owner, d.world_id
    from device d
    left join account a on a.world_id = d.world_id
    left join organization o on o.world_id = d.world_id
    where (d.world_id, d.imei) > (${after.world_id}::bigint, ${after.imei})
      ${worldIds === null ? sql`` : sql`and d.world_id = any(${arrayLiteral(worldIds)}::bigint[])`}
    order by d.world_id, d.imei limit ${limit}`;
}

/** How long it is remembered that a device left a world: longer than any cursor is good for. */
const REMOVAL_RETENTION_HOURS = 48;

/** A device that left a world, or was deleted. */
type RemovalRow = Removal & { readonly worldId: number };

interface RawRemoval {
  world_id: number;
  device_id: number;
  imei: string;
  xid: string;
  xmax: number;
  at: Date;
}

/** Where these devices were before. */
export async function selectRemovalsById(sql: Sql, deviceIds: readonly number[]): Promise<RemovalRow[]> {
  const rows = await sql<RawRemoval[]>`
    select ${columns(sql)} from device_removal where device_id = any(${arrayLiteral(deviceIds)}::bigint[])`;
  return rows.map(removalRow);
}

/** Everything that is remembered, oldest first. */
export async function selectRemovals(tx: Tx): Promise<RemovalRow[]> {
  const rows = await tx<RawRemoval[]>`
    select ${columns(tx)} from device_removal
    where at > clock_timestamp() - make_interval(hours => ${REMOVAL_RETENTION_HOURS}) order by at`;
  return rows.map(removalRow);
}

const columns = (sql: Sql | Tx) => sql`
  world_id, device_id, imei, at, xmin::text as xid,
  (select pg_snapshot_xmax(pg_current_snapshot())::text::bigint) as xmax`;

function removalRow({ world_id: worldId, device_id: deviceId, imei, xid, xmax, at }: RawRemoval): RemovalRow {
  return { worldId, deviceId, imei, xid: wholeXid(Number(xid), xmax), atMs: at.getTime() };
}

/** Deletes a chunk of what is too old to be remembered; returns how many. */
export async function pruneRemovals(sql: Sql): Promise<number> {
  const result = await sql`
    delete from device_removal where (world_id, device_id) in (
      select world_id, device_id from device_removal
      where at < clock_timestamp() - make_interval(hours => ${REMOVAL_RETENTION_HOURS})
      order by at limit ${PRUNE_CHUNK})`;
  return result.count;
}

const PRUNE_CHUNK = 5_000;

/** What one statement deletes of a device: a fraction of a second. */
const POINT_ROWS = 10_000;
const PACKED_ROWS = 100;

/** Deletes the oldest points that are rows of a device, some at a time. Returns how many; 0: there are none left. */
export async function deletePoints(sql: Sql, deviceId: number): Promise<number> {
  const result = await sql`
    delete from position where device_id = ${deviceId} and recorded_at in (
      select recorded_at from position where device_id = ${deviceId} order by recorded_at limit ${POINT_ROWS})`;
  return result.count;
}

/** Deletes a chunk of the packed points of a device. Returns how many points they were; 0: there are none left. */
export async function deletePacked(sql: Sql, deviceId: number): Promise<number> {
  const rows = await sql<{ count: number }[]>`
    delete from packed_points where device_id = ${deviceId} and first_at in (
      select first_at from packed_points where device_id = ${deviceId} order by first_at limit ${PACKED_ROWS})
    returning count`;
  return rows.reduce((sum, { count }) => sum + count, 0);
}

/**
 * Deletes a device that this transaction has locked, with its state, its commands and its points, of which most must be
 * gone already. Waits for a transaction of points that has the state locked. Returns the number of points.
 */
export async function deleteDeviceRows(tx: Tx, deviceId: number): Promise<number> {
  await tx`delete from device_state where device_id = ${deviceId}`;
  const points = await tx`delete from position where device_id = ${deviceId}`;
  const packed = await tx<{ count: number }[]>`
    delete from packed_points where device_id = ${deviceId} returning count`;
  await tx`delete from command where device_id = ${deviceId}`;
  await tx`delete from device where id = ${deviceId}`;
  return packed.reduce((sum, { count }) => sum + count, points.count);
}

/**
 * How many devices these worlds have. Locked until the transaction ends, so nobody else can add any before that. Must be
 * called after the locks of devices, like the triggers that count. Locks by ascending id, so two calls cannot deadlock.
 */
export async function lockDeviceCounts(
  tx: Tx,
  worldIds: readonly number[],
): Promise<ReadonlyMap<number, number>> {
  await tx`
    insert into device_usage (world_id) select id from unnest(${arrayLiteral(worldIds)}::bigint[]) as id order by id
    on conflict do nothing`;
  const rows = await tx<{ world_id: number; devices: number }[]>`
    select world_id, devices from device_usage where world_id = any(${arrayLiteral(worldIds)}::bigint[])
    order by world_id for update`;
  return new Map(rows.map((row) => [row.world_id, row.devices]));
}
