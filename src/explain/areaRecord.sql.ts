import { isProducedSince } from '../events/eventParts.sql.ts';
import type { Direction } from '../events/fleetEvent.ts';
import type { Sql, Tx } from '../postgres/sql.ts';
import { arrayLiteral } from '../postgres/sqlText.ts';

/** A geofence event of an area and a device as it was recorded. */
export interface RecordedPassage {
  readonly id: number;
  /** The world that may read it. */
  readonly worldId: number;
  readonly direction: Direction;
  readonly occurredAtMs: number;
  /** The first inside point of its stay. */
  readonly enteredAtMs: number;
}

interface RawPassage {
  id: number;
  world_id: number;
  direction: Direction;
  occurred_at: Date;
  entered_at: string;
}

/** Whose events are read: those of a device and an area, in all worlds in which they may be. */
export interface PassageSource {
  readonly areaId: number;
  readonly deviceId: number;
  readonly imei: string;
  readonly worldIds: readonly number[];
}

/** The events between two times, both included, oldest first. */
export async function selectPassages(
  tx: Tx,
  source: PassageSource,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<RecordedPassage[]> {
  const rows = await tx<RawPassage[]>`
    select ${columns(tx)} from fleet_event
    where ${isOf(tx, source)} and ${isProducedSince(tx, fromMs)} and occurred_at between ${new Date(fromMs)} and ${new Date(toMs)}
    order by occurred_at, id`;
  return rows.map(passage);
}

/** The newest event before a time. */
export async function selectLastPassage(
  tx: Tx,
  source: PassageSource,
  beforeMs: number,
): Promise<RecordedPassage | undefined> {
  const [row] = await tx<RawPassage[]>`
    select ${columns(tx)} from fleet_event
    where ${isOf(tx, source)} and occurred_at < ${new Date(beforeMs)}
    order by occurred_at desc, id desc limit 1`;
  return row === undefined ? undefined : passage(row);
}

const columns = (tx: Sql | Tx) => tx`id, world_id, direction, occurred_at, data->>'enteredAt' as entered_at`;

const isOf = (tx: Sql | Tx, { areaId, deviceId, imei, worldIds }: PassageSource) => tx`
  device_imei = ${imei} and world_id = any(${arrayLiteral(worldIds)}::bigint[]) and type = 'geofence'
  and area_id = ${areaId} and device_id = ${deviceId}`;

function passage(row: RawPassage): RecordedPassage {
  return {
    id: row.id,
    worldId: row.world_id,
    direction: row.direction,
    occurredAtMs: row.occurred_at.getTime(),
    enteredAtMs: Date.parse(row.entered_at),
  };
}
