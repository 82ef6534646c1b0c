import type { Sql } from '../postgres/sql.ts';
import { arrayLiteral } from '../postgres/sqlText.ts';

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
