import { isProducedSince } from '../events/eventParts.sql.ts';
import type { Direction } from '../events/fleetEvent.ts';
import { earliestOf, type PackedOf, packedOf } from '../history/packedOf.sql.ts';
import { unpackRow } from '../history/packedRows.sql.ts';
import { upTo } from '../history/stretches.sql.ts';
import { invariant } from '../lib/invariant.ts';
import { CopiedRow } from '../postgres/copiedRow.ts';
import type { Sql, Tx } from '../postgres/sql.ts';
import { arrayLiteral, integers } from '../postgres/sqlText.ts';
import { eventKey, type RecordedEvents } from './backtest/areaReplay.ts';

/** A device and the time from which its points are read. */
export interface DevicePart {
  readonly deviceId: number;
  readonly imei: string;
  readonly fromMs: number;
}

/** Half a megabyte, and some tens of milliseconds of a connection. */
export const REPLAY_PAGE_POINTS = 16_384;

/**
 * Points of several devices, column by column: by device in the order asked for, then by time. Points that came late are
 * left out, since the engine did not evaluate them. Used again and again.
 */
export class ReplayPage {
  count = 0;
  /** True when there may be more points of these parts. */
  isFull = false;
  /** The number of the part that each point belongs to, from 0. */
  readonly parts = new Int32Array(REPLAY_PAGE_POINTS);
  readonly recordedAtMs = new Float64Array(REPLAY_PAGE_POINTS);
  readonly lats = new Float64Array(REPLAY_PAGE_POINTS);
  readonly lngs = new Float64Array(REPLAY_PAGE_POINTS);
  /** 1 where it is not recorded whether the point came late. */
  readonly unmarked = new Uint8Array(REPLAY_PAGE_POINTS);

  /** False: there is no room. */
  add(part: number, recordedAtMs: number, lat: number, lng: number, isUnmarked: boolean): boolean {
    const n = this.count;
    if (n === REPLAY_PAGE_POINTS) return false;
    if (n > 0) {
      const before = this.parts[n - 1] as number;
      const isNext = part === before ? recordedAtMs > (this.recordedAtMs[n - 1] as number) : part > before;
      invariant(isNext, 'points are read in the order of their devices and times');
    }
    this.parts[n] = part;
    this.recordedAtMs[n] = recordedAtMs;
    this.lats[n] = lat;
    this.lngs[n] = lng;
    this.unmarked[n] = isUnmarked ? 1 : 0;
    this.count = n + 1;
    return true;
  }

  get hasUnmarked(): boolean {
    return this.unmarked.subarray(0, this.count).includes(1);
  }

  /** Of the last point. */
  lastPlace(): Horizon {
    const n = this.count - 1;
    return { part: this.parts[n] as number, ms: this.recordedAtMs[n] as number };
  }

  /** Empties the page, and returns a copy of what it had. */
  takeRows(): Pick<ReplayPage, 'count' | 'parts' | 'recordedAtMs' | 'lats' | 'lngs' | 'unmarked'> {
    const { count } = this;
    this.count = 0;
    return {
      count,
      parts: this.parts.slice(0, count),
      recordedAtMs: this.recordedAtMs.slice(0, count),
      lats: this.lats.slice(0, count),
      lngs: this.lngs.slice(0, count),
      unmarked: this.unmarked.slice(0, count),
    };
  }
}

/** A part, and a time up to which everything was read. */
interface Horizon {
  readonly part: number;
  readonly ms: number;
}

/** Fills `page` with the first points of these parts up to `toMs`. Throws DamagedPoints. */
export async function readReplayPage(
  sql: Sql | Tx,
  parts: readonly DevicePart[],
  toMs: number,
  page: ReplayPage,
): Promise<void> {
  page.count = 0;
  let left = parts;
  for (let first = 0; ; ) {
    const horizon = await readReplay(sql, left, toMs, page);
    for (let n = 0; n < page.count && first > 0; n++) page.parts[n] = (page.parts[n] as number) + first;
    page.isFull = horizon !== null;
    if (horizon === null || page.count > 0) return;
    // What was packed reaches over the time without a point in it.
    first += horizon.part;
    left = left
      .slice(horizon.part)
      .map((part, n) => (n === 0 ? { ...part, fromMs: Math.max(part.fromMs, horizon.ms + 1) } : part));
  }
}

/** Null: there are no more. */
async function readReplay(
  sql: Sql | Tx,
  parts: readonly DevicePart[],
  toMs: number,
  page: ReplayPage,
): Promise<Horizon | null> {
  // Rows first: one that is packed between the two statements is seen twice, never not at all.
  await readRows(sql, parts, toMs, page);
  const last = page.count - 1;
  const rowHorizon: Horizon | null =
    page.count === REPLAY_PAGE_POINTS
      ? { part: page.parts[last] as number, ms: page.recordedAtMs[last] as number }
      : null;
  const wanted = rowHorizon === null ? parts : parts.slice(0, rowHorizon.part + 1);
  const packed = await packedOf(sql, wanted, toMs, REPLAY_PAGE_POINTS);
  if (packed.length === 0) return rowHorizon;
  const points = packed.reduce((sum, { row }) => sum + row.count, 0);
  const end = packed.at(-1) as PackedOf;
  const packedHorizon = points < REPLAY_PAGE_POINTS ? null : { part: end.part, ms: end.row.lastMs };
  const horizon = earlier(rowHorizon, packedHorizon);
  return mergeReplay(page, parts, packed, toMs, horizon);
}

function earlier(a: Horizon | null, b: Horizon | null): Horizon | null {
  if (a === null || b === null) return a ?? b;
  if (a.part !== b.part) return a.part < b.part ? a : b;
  return a.ms < b.ms ? a : b;
}

/** Puts packed points between the rows of a page, up to the horizon or as many as there is room for. */
function mergeReplay(
  page: ReplayPage,
  parts: readonly DevicePart[],
  packed: readonly PackedOf[],
  toMs: number,
  horizon: Horizon | null,
): Horizon | null {
  const rows = page.takeRows();
  let at = 0;
  /** Takes the rows of a part before a time, and drops the one at it. False: the page is full. */
  const takeRows = (part: number, beforeMs: number): boolean => {
    for (; at < rows.count; at++) {
      const rowPart = rows.parts[at] as number;
      const ms = rows.recordedAtMs[at] as number;
      if (rowPart > part || (rowPart === part && ms >= beforeMs)) break;
      const isUnmarked = rows.unmarked[at] === 1;
      if (!page.add(rowPart, ms, rows.lats[at] as number, rows.lngs[at] as number, isUnmarked)) return false;
    }
    if (rows.parts[at] === part && rows.recordedAtMs[at] === beforeMs && at < rows.count) at++;
    return true;
  };
  for (const { part, row } of packed) {
    if (horizon !== null && (part > horizon.part || (part === horizon.part && row.firstMs > horizon.ms)))
      break;
    const columns = unpackRow(row);
    const times = columns.column('recordedAtMs');
    const lats = columns.column('lats');
    const lngs = columns.column('lngs');
    const lates = columns.column('lates');
    const limitMs = horizon?.part === part ? Math.min(toMs, horizon.ms) : toMs;
    const end = upTo(times, limitMs);
    for (let n = upTo(times, (parts[part] as DevicePart).fromMs - 1); n < end; n++) {
      const ms = times[n] as number;
      const late = lates[n] as number;
      if (!takeRows(part, ms)) return page.lastPlace();
      if (late === 1) continue;
      if (!page.add(part, ms, lats[n] as number, lngs[n] as number, Number.isNaN(late)))
        return page.lastPlace();
    }
  }
  const isAll = horizon === null ? takeRows(parts.length, 0) : takeRows(horizon.part, horizon.ms + 1);
  return isAll ? horizon : page.lastPlace();
}

async function readRows(
  sql: Sql | Tx,
  parts: readonly DevicePart[],
  toMs: number,
  page: ReplayPage,
): Promise<void> {
  const row = new CopiedRow();
  page.count = 0;
  // A subquery with an order is never joined in another way than device by device, so the order of the whole is known.
  const query = sql`
    select d.n, p.recorded_at, p.latitude, p.longitude, p.is_unmarked
    from unnest(
      '{${integers(parts.map((part) => part.deviceId))}}'::bigint[],
      '{${integers(parts.map((part) => part.fromMs))}}'::float8[]) with ordinality d (id, since, n)
    cross join lateral (
      select recorded_at, latitude, longitude, (late is null)::integer as is_unmarked from position
      where device_id = d.id and recorded_at >= to_timestamp(d.since / 1000) and late is not true
        and recorded_at between to_timestamp(${integers([earliestOf(parts)])} / 1000::float8)
          and to_timestamp(${integers([toMs])} / 1000::float8)
      order by recorded_at) p
    limit ${integers([REPLAY_PAGE_POINTS])}`;
  await sql.copy(query, (bytes) => {
    row.feed(bytes);
    while (row.next()) {
      page.add(row.int8() - 1, row.timestampMs(), row.float8(), row.float8(), row.int4() === 1);
    }
  });
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
