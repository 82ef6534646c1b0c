import { isProducedSince } from '../events/eventPartitions.sql.ts';
import type { Direction } from '../events/fleetEvent.ts';
import type { Sql, Tx } from '../postgres/sql.ts';
import { arrayLiteral } from '../postgres/sqlText.ts';
import { eventKey, type RecordedEvents } from './backtest/areaReplay.ts';

/** A geofence event of an area and a device as it was recorded. */
export interface RecordedCrossing {
  readonly id: number;
  /** The world that may read it. */
  readonly worldId: number;
  readonly direction: Direction;
  readonly occurredAtMs: number;
  /** The first inside point of its stay. */
  readonly enteredAtMs: number;
}

interface RawCrossing {
  id: number;
  world_id: number;
  direction: Direction;
  occurred_at: Date;
  entered_at: string;
}

/** Whose events are read: those of a device and an area, in all worlds in which they may be. */
export interface CrossingSource {
  readonly areaId: number;
  readonly deviceId: number;
  readonly imei: string;
  readonly worldIds: readonly number[];
}

/** The events between two times, both included, oldest first. */
export async function selectCrossings(
  tx: Tx,
  source: CrossingSource,
  { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
): Promise<RecordedCrossing[]> {
  const rows = await tx<RawCrossing[]>`
    select ${columns(tx)} from fleet_event
    where ${isOf(tx, source)} and ${isProducedSince(tx, fromMs)} and occurred_at between ${new Date(fromMs)} and ${new Date(toMs)}
    order by occurred_at, id`;
  return rows.map(crossingOf);
}

/** The newest event before a time. */
export async function selectLastCrossing(
  tx: Tx,
  source: CrossingSource,
  beforeMs: number,
): Promise<RecordedCrossing | undefined> {
  const [row] = await tx<RawCrossing[]>`
    select ${columns(tx)} from fleet_event
    where ${isOf(tx, source)} and occurred_at < ${new Date(beforeMs)}
    order by occurred_at desc, id desc limit 1`;
  return row === undefined ? undefined : crossingOf(row);
}

const columns = (tx: Sql | Tx) => tx`id, world_id, direction, occurred_at, data->>'enteredAt' as entered_at`;

const isOf = (tx: Sql | Tx, { areaId, deviceId, imei, worldIds }: CrossingSource) => tx`
  device_imei = ${imei} and world_id = any(${arrayLiteral(worldIds)}::bigint[]) and type = 'geofence'
  and area_id = ${areaId} and device_id = ${deviceId}`;

function crossingOf(row: RawCrossing): RecordedCrossing {
  return {
    id: row.id,
    worldId: row.world_id,
    direction: row.direction,
    occurredAtMs: row.occurred_at.getTime(),
    enteredAtMs: Date.parse(row.entered_at),
  };
}

/** A device and a time, both ends included. */
export interface DeviceSpan {
  readonly imei: string;
  readonly fromMs: number;
  readonly toMs: number;
}

/** The recorded events of an area that may be read in these worlds, for each of the spans. */
export async function selectRecorded(
  tx: Tx,
  worldIds: readonly number[],
  areaId: number,
  spans: readonly DeviceSpan[],
): Promise<RecordedEvents[]> {
  const recorded = spans.map(() => new Set<number>());
  if (spans.length === 0) return recorded;
  const rows = await tx<{ n: number; direction: Direction; occurred_at: Date }[]>`
    select d.n, e.direction, e.occurred_at
    from unnest(
      ${arrayLiteral(spans.map((span) => span.imei))}::text[],
      ${arrayLiteral(spans.map((span) => span.fromMs))}::float8[],
      ${arrayLiteral(spans.map((span) => span.toMs))}::float8[]) with ordinality d (imei, since, until, n)
    cross join lateral (
      select direction, occurred_at from fleet_event
      where device_imei = d.imei and world_id = any(${arrayLiteral(worldIds)}::bigint[]) and type = 'geofence'
        and area_id = ${areaId} and ${isProducedSince(tx, Math.min(...spans.map(({ fromMs }) => fromMs)))}
        and occurred_at >= to_timestamp(d.since / 1000)
        and occurred_at <= to_timestamp(d.until / 1000)
      offset 0) e`;
  for (const row of rows) recorded[row.n - 1]?.add(eventKey(row.direction, row.occurred_at.getTime()));
  return recorded;
}
