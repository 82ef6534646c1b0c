import { DAY_MS, MINUTE_MS } from '../lib/time.ts';
import { PARTITION_LOCK } from '../postgres/partitions.ts';
import type { Sql, Tx } from '../postgres/sql.ts';
import { identifier, integers, type SqlText } from '../postgres/sqlText.ts';

/**
 * Into how many partitions the time of the retention is divided. A list searches all of them, and an event may be kept for
 * longer by the time of one.
 */
const PARTITIONS = 8;
const PARTITION_MIN_MS = DAY_MS;
/** The least and the most ids of a partition. The least keeps ids low where partitions are begun early. */
const IDS_MIN = 1_000_000;
const IDS_MAX = 1_000_000_000_000;
/** Ids that are given while a partition is made for those that lie behind all others. */
const IDS_MEANWHILE = 1_000_000;
/** Longer than any transaction of points. An older one may not know a partition, and could not store an event in it. */
const KNOWN_MS = MINUTE_MS;
/** The partition that has no range. */
const REST = 'fleet_event_rest';

/** A partition of fleet_event: a range of ids. */
interface EventPartition {
  readonly name: string;
  readonly firstId: number;
  readonly endId: number;
  readonly madeMs: number;
  /** When its first id was given; null: none was. */
  readonly beganMs: number | null;
}

/**
 * Begins a new partition of events when the present one is an eighth of `retentionDays` old, and makes the one after it
 * ahead of time. Ids that the old one still had are never given: they jump to the new one.
 */
export async function advanceEventPartitions(sql: Sql, retentionDays: number): Promise<void> {
  await sql.begin(async (tx) => {
    await beginChange(tx);
    const [row] = await tx<{ next_id: number; now: Date }[]>`
      select last_value + is_called::integer as next_id, clock_timestamp() as now from fleet_event_id_seq`;
    const { next_id: nextId, now } = row as { next_id: number; now: Date };
    const partitionMs = Math.max((retentionDays * DAY_MS) / PARTITIONS, PARTITION_MIN_MS);
    const partitions = await selectPartitions(tx);
    const present = partitions.findLast(({ firstId }) => firstId <= nextId);
    const last = partitions.at(-1);
    if (present === undefined || last === undefined) throw new Error('fleet_event has no partition');
    await tx`update event_part set began_at = ${now} where began_at is null and first_id < ${nextId}`;
    const next = partitions.find(({ firstId }) => firstId > nextId);
    if (next === undefined) {
      // Never over rows of the rest.
      const firstId = nextId < last.endId ? last.endId : nextId + IDS_MEANWHILE;
      await makePartition(tx, firstId, firstId + idsOf(present, nextId, now.getTime(), partitionMs));
      return;
    }
    const isFull = nextId >= present.endId;
    const isOld = present.beganMs !== null && now.getTime() - present.beganMs >= partitionMs;
    const isKnown = now.getTime() - next.madeMs >= KNOWN_MS;
    if (isKnown && (isFull || (isOld && nextId > present.firstId))) await jumpTo(tx, next.firstId);
  });
}

/** Ids for twice the time of a partition, at the rate of the present one. */
function idsOf(present: EventPartition, nextId: number, nowMs: number, partitionMs: number): number {
  const tookMs = Math.max(nowMs - (present.beganMs ?? nowMs), 1_000);
  const ids = (2 * partitionMs * (nextId - present.firstId)) / tookMs;
  return Math.ceil(Math.min(Math.max(ids, IDS_MIN), IDS_MAX) / IDS_MIN) * IDS_MIN;
}

async function makePartition(tx: Tx, firstId: number, endId: number): Promise<void> {
  const name = `fleet_event_${firstId}`;
  await tx`create table ${identifier(name)} (like fleet_event including all excluding identity)`;
  // As with weeks, attaching does not block writers of other partitions; creating it as a partition would.
  await tx`
    alter table fleet_event attach partition ${identifier(name)}
    for values from (${integers([firstId])}) to (${integers([endId])})`;
  await tx`insert into event_part (first_id, end_id, name) values (${firstId}, ${endId}, ${name})`;
}

/** Sets the sequence ahead, at once and for everybody. */
async function jumpTo(tx: Tx, firstId: number): Promise<void> {
  await tx`update event_part set began_at = clock_timestamp() where first_id = ${firstId}`;
  await tx`select setval('fleet_event_id_seq', ${firstId}, false) from fleet_event_id_seq where last_value < ${firstId}`;
}

/** Drops the partitions whose events were all produced before `oldestMs`; returns their names. */
export async function dropEventPartitions(sql: Sql, oldestMs: number): Promise<string[]> {
  const partitions = await selectPartitions(sql);
  const dropped = partitions.filter(
    (_, n) => (partitions[n + 1]?.beganMs ?? Number.POSITIVE_INFINITY) < oldestMs,
  );
  for (const { name } of dropped) {
    await sql.begin(async (tx) => {
      await beginChange(tx);
      await tx`drop table if exists ${identifier(name)}`;
      await tx`delete from event_part where name = ${name}`;
    });
  }
  return dropped.map(({ name }) => name);
}

const DELETED_AT_A_TIME = 5_000;

/** Deletes some of the oldest events behind all ranges, which no partition of a time has. Returns how many. */
export async function deleteOldEvents(sql: Sql, oldestMs: number): Promise<number> {
  const { count } = await sql`
    with oldest as materialized (
      select id, recorded_at from ${identifier(REST)} order by id limit ${DELETED_AT_A_TIME}
    )
    delete from ${identifier(REST)}
    where id in (select id from oldest where recorded_at < ${new Date(oldestMs)})`;
  return count;
}

/**
 * The first ids of partitions, as a pod knows them. A list is read range by range, so that Postgres plans each part of it
 * for one table, whose indexes have the order of the list: of several it may choose to sort all that it finds. Ranges
 * between any numbers are right; between these they are fast.
 */
export class EventCuts {
  #ids: readonly number[] = [];

  async refresh(sql: Sql): Promise<void> {
    this.#ids = (await selectPartitions(sql)).slice(1).map(({ firstId }) => firstId);
  }

  /** Conditions on `id`, of which each event meets one. */
  ranges(sql: Sql): SqlText[] {
    const ids = this.#ids;
    return Array.from({ length: ids.length + 1 }, (_, n) => {
      const from = n === 0 ? sql`true` : sql`id >= ${integers([ids[n - 1] as number])}`;
      const to = n === ids.length ? sql`true` : sql`id < ${integers([ids[n] as number])}`;
      return sql`${from} and ${to}`;
    });
  }

  /** Part of the name of a prepared statement: other ranges are another text. */
  get name(): string {
    return `${this.#ids.length}_${(this.#ids.at(-1) ?? 0) / IDS_MIN}`;
  }
}

/**
 * A condition on `id` that every event meets that occurred at `ms` or later, so that older partitions are passed over.
 * An event may be some minutes older than its point says, and pods have clocks of their own.
 */
export function isProducedSince(sql: Sql | Tx, ms: number): SqlText {
  return sql`
    id >= (select coalesce(max(first_id), 0) from event_part where began_at < ${new Date(ms - DAY_MS)})`;
}

async function beginChange(tx: Tx): Promise<void> {
  // Both wait for readers of the table, and others wait behind them. So they give up quickly.
  await tx`set local lock_timeout = '2s'`;
  await tx`select pg_advisory_xact_lock(${PARTITION_LOCK})`;
}

async function selectPartitions(sql: Sql | Tx): Promise<EventPartition[]> {
  const rows = await sql<
    { name: string; first_id: number; end_id: number; made_at: Date; began_at: Date | null }[]
  >`
    select name, first_id, end_id, made_at, began_at from event_part order by first_id`;
  return rows.map(({ name, first_id: firstId, end_id: endId, made_at, began_at }) => ({
    name,
    firstId,
    endId,
    madeMs: made_at.getTime(),
    beganMs: began_at?.getTime() ?? null,
  }));
}
