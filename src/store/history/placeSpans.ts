import type { IndexBox } from '../../geometry/bounds.ts';
import { weekStartMs } from '../sql/partitions.ts';
import type { Sql } from '../sql/sql.ts';
import { arrayLiteral } from '../sql/sqlText.ts';
import type { TimeWindow } from './pointPages.ts';

/** A time in which a device may have been in a box. */
export interface PlaceSpan extends TimeWindow {
  readonly deviceId: number;
}

/**
 * The times in which these devices may have had points in one of the boxes, within a window: by the boxes of packed points,
 * which are not unpacked for it, and by the rows. By device, then by time. Spans of a device that are at most `apartMs`
 * apart are one, so what happened in between is read too.
 */
export async function selectPlaceSpans(
  sql: Sql,
  deviceIds: readonly number[],
  boxes: readonly IndexBox[],
  window: TimeWindow,
  apartMs: number,
): Promise<PlaceSpan[]> {
  if (deviceIds.length === 0 || window.fromMs > window.toMs) return [];
  const spans: PlaceSpan[] = [];
  for (const box of boxes) {
    spans.push(...(await packedSpans(sql, deviceIds, box, window)));
    spans.push(...(await rowSpans(sql, deviceIds, box, window)));
  }
  return merged(
    spans.map((span) => clipped(span, window)),
    apartMs,
  );
}

interface SpanRow {
  readonly device_id: number;
  readonly first: Date;
  readonly last: Date;
}

async function packedSpans(
  sql: Sql,
  deviceIds: readonly number[],
  { minX, minY, maxX, maxY }: IndexBox,
  { fromMs, toMs }: TimeWindow,
): Promise<PlaceSpan[]> {
  const rows = await sql<SpanRow[]>`
    select device_id, first_at as first, last_at as last from packed_points
    where device_id = any(${arrayLiteral(deviceIds)}::bigint[])
      and first_at between ${new Date(weekStartMs(fromMs))} and ${new Date(toMs)} and last_at >= ${new Date(fromMs)}
      and north >= ${minY} and south <= ${maxY}
      and case when west <= east then west <= ${maxX} and east >= ${minX} else west <= ${maxX} or east >= ${minX} end`;
  return rows.map(spanOf);
}

async function rowSpans(
  sql: Sql,
  deviceIds: readonly number[],
  { minX, minY, maxX, maxY }: IndexBox,
  { fromMs, toMs }: TimeWindow,
): Promise<PlaceSpan[]> {
  const rows = await sql<SpanRow[]>`
    select d.id as device_id, p.first, p.last
    from unnest(${arrayLiteral(deviceIds)}::bigint[]) d (id)
    cross join lateral (
      select min(recorded_at) as first, max(recorded_at) as last from position
      where device_id = d.id and recorded_at between ${new Date(fromMs)} and ${new Date(toMs)}
        and latitude between ${minY} and ${maxY} and longitude between ${minX} and ${maxX}) p
    where p.first is not null`;
  return rows.map(spanOf);
}

function spanOf({ device_id: deviceId, first, last }: SpanRow): PlaceSpan {
  return { deviceId, fromMs: first.getTime(), toMs: last.getTime() };
}

function clipped({ deviceId, fromMs, toMs }: PlaceSpan, window: TimeWindow): PlaceSpan {
  return { deviceId, fromMs: Math.max(fromMs, window.fromMs), toMs: Math.min(toMs, window.toMs) };
}

function merged(spans: readonly PlaceSpan[], apartMs: number): PlaceSpan[] {
  const result: PlaceSpan[] = [];
  for (const span of spans.toSorted((a, b) => a.deviceId - b.deviceId || a.fromMs - b.fromMs)) {
    const last = result.at(-1);
    if (last?.deviceId === span.deviceId && span.fromMs <= last.toMs + apartMs) {
      result[result.length - 1] = { ...last, toMs: Math.max(last.toMs, span.toMs) };
    } else {
      result.push(span);
    }
  }
  return result;
}
