import type { Worlds } from '../access/credentials.ts';
import { type LogPosition, Snapshot } from '../changelog/appliedTransactions.memory.ts';
import { type ServerRow, serverColumns, serverOfRow } from '../changelog/database.sql.ts';
import type { Server } from '../changelog/serverStarts.ts';
import type { EventCuts } from '../events/eventPartitions.sql.ts';
import type { Direction, EventType } from '../events/fleetEvent.ts';
import { type FleetEvent, ofSeenDevices, worldsShape } from '../events/fleetEvents.sql.ts';
import type { Sql } from '../postgres/sql.ts';
import { integers, shapeName, unionAll } from '../postgres/sqlText.ts';

/** An event with the time at which it was produced and its position in the feed. */
export interface RecordedEvent extends FleetEvent, LogPosition {
  readonly recorded_at: Date;
}

export interface EventFilters {
  readonly type: EventType | null;
  readonly direction: Direction | null;
  readonly imei: string | null;
}

export interface EventFeedQuery extends EventFilters {
  /** What the reader has seen. */
  readonly seen: Snapshot;
  /** Events of later transactions are left out; null: of those that are not committed now. */
  readonly upTo: Snapshot | null;
  readonly after: LogPosition | null;
  readonly fromMs: number | null;
  readonly limit: number;
}

export interface EventFeedPage {
  readonly events: readonly RecordedEvent[];
  readonly upTo: Snapshot;
  /** What is committed now. */
  readonly present: Snapshot;
  /** Where the next page begins; null when all that `upTo` sees was read. */
  readonly next: LogPosition | null;
  readonly server: Server;
}

/** Events that one call looks at where it wants few of them: the rest is for the next call. */
const WALK_MAX = 5_000;
/**
 * Otherwise as few of these as hold a page. To plan walks through every partition takes longer than to run them, and
 * Postgres keeps the plan where it knows the limits, and where no plan for the values of one call looks cheaper: so these
 * are read from a row.
 */
const WALKS = [100, 250, 500, 1_000];

interface FeedRow extends ServerRow {
  up_to: string;
  present: string;
  walked: number;
  last_xid: string | null;
  last_id: number | null;
  xid: string;
  id: number | null;
  type: EventType;
  message: string;
  device_imei: string;
  data: Record<string, unknown>;
  read: boolean;
  occurred_at: Date;
  recorded_at: Date;
}

/**
 * Events of the given worlds that one snapshot sees and another does not, by transaction and id. Walks the index of the
 * feed from the oldest transaction that may be missing.
 */
export async function selectEventFeed(
  sql: Sql,
  worldIds: Worlds,
  { seen, upTo, after, fromMs, type, direction, imei, limit }: EventFeedQuery,
  cuts: EventCuts,
): Promise<EventFeedPage> {
  const isNarrowed =
    worldIds.groups !== undefined || fromMs !== null || type !== null || direction !== null || imei !== null;
  const steps = 1 + (isNarrowed ? WALK_MAX : (WALKS.find((events) => limit <= events) ?? limit));
  const columns = sql`
    xid, id, type, direction, message, device_imei, data, read, occurred_at,
    recorded_at`;
  const walks = worldIds.flatMap((worldId) =>
    cuts.ranges(sql).map(
      (range) => sql`(
      select ${columns} from fleet_event
      where world_id = ${worldId} and ${range}
        and (xid, id) > ((select after_xid from asked), (select after_id from asked))
        and not pg_visible_in_snapshot(xid, (select seen from asked))
        and pg_visible_in_snapshot(xid, (select up_to from asked))
      order by xid, id limit ${integers([steps])})`,
    ),
  );
  const filters = { type, direction, imei, fromMs };
  const rows = await sql<FeedRow[]>`
    with asked as materialized (
      select coalesce(${upTo?.toString() ?? null}::pg_snapshot, pg_current_snapshot()) as up_to,
             pg_current_snapshot() as present, ${serverColumns(sql)}, ${seen.toString()}::pg_snapshot as seen,
             ${String(after?.xid ?? seen.xmin)}::xid8 as after_xid, ${after?.id ?? 0}::bigint as after_id
    ), walked as materialized (
      select * from (${unionAll(walks)}) w order by xid, id limit ${integers([steps])}
    ), last as (
      select (select count(*)::int from walked) as walked, l.xid, l.id
      from (select xid, id from walked order by xid desc, id desc limit 1) l
    ), found as (
      select * from walked
      where true ${ofSeenDevices(sql, worldIds)}
        ${type === null ? sql`` : sql`and type = ${type}`}
        ${direction === null ? sql`` : sql`and direction = ${direction}`}
        ${imei === null ? sql`` : sql`and device_imei = ${imei}`}
        ${fromMs === null ? sql`` : sql`and recorded_at >= ${new Date(fromMs)}`}
      order by xid, id limit ${limit + 1}
    )
    select asked.up_to::text, asked.present::text, asked.history, asked.start, asked.flushed_bytes,
           coalesce(last.walked, 0) as walked, last.xid::text as last_xid, last.id as last_id,
           f.xid::text as xid, f.id, f.type, f.message, f.device_imei, f.data, f.read, f.occurred_at, f.recorded_at
    from asked left join last on true left join found f on true
    order by f.xid, f.id`.named(
    shapeName(`event_feed_${worldsShape(worldIds)}_${steps}_${cuts.name}`, filters),
  );
  return pageOf(rows, limit, steps);
}

function pageOf(rows: readonly FeedRow[], limit: number, steps: number): EventFeedPage {
  const [first] = rows;
  if (first === undefined) throw new Error('the query of the event feed always returns a row');
  const events = rows.flatMap((row) => (row.id === null ? [] : [eventOf(row, row.id)]));
  const page = events.slice(0, limit);
  const last = page.at(-1);
  const isFull = events.length > limit && last !== undefined;
  const isCut = first.walked === steps && first.last_xid !== null && first.last_id !== null;
  const present = Snapshot.parse(first.present);
  return {
    events: page,
    upTo: Snapshot.parse(first.up_to),
    present,
    next: isFull
      ? { xid: last.xid, id: last.id }
      : isCut
        ? { xid: Number(first.last_xid), id: first.last_id as number }
        : null,
    server: serverOfRow(first, present),
  };
}

function eventOf(row: FeedRow, id: number): RecordedEvent {
  return {
    xid: Number(row.xid),
    id,
    type: row.type,
    message: row.message,
    device_imei: row.device_imei,
    data: row.data,
    read: row.read,
    occurred_at: row.occurred_at,
    recorded_at: row.recorded_at,
  };
}

/** Longer than any transaction of points stays open. */
const TRANSACTION_MAX_MINUTES = 10;

/**
 * A snapshot that has seen no event produced since `fromMs`, and not much less than those before: every transaction that
 * produced one has begun after the ones that ended long before.
 */
export async function selectSeenBefore(
  sql: Sql,
  worldIds: readonly number[],
  fromMs: number,
): Promise<Snapshot> {
  const xids: number[] = [];
  for (const worldId of worldIds) {
    const [row] = await sql<{ xid: string }[]>`
      select xid::text from fleet_event
      where world_id = ${worldId}
        and recorded_at < (select ${new Date(fromMs)}::timestamptz - make_interval(mins => ${TRANSACTION_MAX_MINUTES}))
      order by recorded_at desc limit 1`.named('event_seen_before');
    xids.push(Number(row?.xid ?? 0));
  }
  // Of any world: transaction ids are given to all of them in one order.
  const first = Math.max(...xids) + 1;
  return new Snapshot(first, first, []);
}

/** What is committed now. */
export async function selectPresent(sql: Sql): Promise<Snapshot> {
  const [row] = await sql<{ snapshot: string }[]>`select pg_current_snapshot()::text as snapshot`;
  return Snapshot.parse(row?.snapshot ?? '');
}
