import type { Tx } from '../postgres/sql.ts';
import { arrayLiteral } from '../postgres/sqlText.ts';

/** The fields of a device that an administrator sets. */
export interface DeviceDraft {
  readonly imei: string;
  readonly worldId: number;
  readonly name: string | null;
  readonly plate: string | null;
  readonly model: string | null;
  readonly groups: readonly string[];
}

export interface StoredDevice extends DeviceDraft {
  readonly id: number;
}

/** The devices with these IMEIs, of any owner, locked for changes until the transaction ends. */
export async function selectDevicesForUpdate(tx: Tx, imeis: readonly string[]): Promise<StoredDevice[]> {
  const rows = await tx<
    {
      id: number;
      imei: string;
      world_id: number;
      name: string | null;
      plate: string | null;
      device_model: string | null;
      groups: string[];
    }[]
  >`
    select id, imei, world_id, name, plate, device_model, groups from device
    where imei = any(${arrayLiteral(imeis)}::text[])
    order by imei for no key update`;
  return rows.map(({ world_id: worldId, device_model: model, ...row }) => ({ ...row, worldId, model }));
}

/** Adds devices, each with its (empty) state, and returns those whose IMEI was free. */
export async function insertDevices(
  tx: Tx,
  drafts: readonly DeviceDraft[],
): Promise<{ id: number; imei: string; worldId: number }[]> {
  if (drafts.length === 0) return [];
  const rows = await tx<{ id: number; imei: string; world_id: number }[]>`
    with created as (
      insert into device (imei, world_id, name, plate, device_model, groups)
      select imei, world_id, name, plate, device_model, groups from ${recordset(tx, drafts)}
      order by imei
      on conflict (imei) do nothing
      returning id, imei, world_id
    ), state as (
      insert into device_state (device_id) select id from created
    )
    select id, imei, world_id from created`;
  return rows.map((row) => ({ id: row.id, imei: row.imei, worldId: row.world_id }));
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
