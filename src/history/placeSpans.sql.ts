import type { IndexBox } from '../geo/measure.ts';
import { weekStartMs } from '../lib/time.ts';
import { arrayLiteral, type Sql } from '../postgres/sql.ts';
import type { PointRange, TimeWindow } from './packedPoints.sql.ts';
import { selectBoxedTime, selectBoxedWindows } from './rowBoxes.sql.ts';

/** Where each has a day of rows, they take half a second. */
const FIRST_WINDOWS = 100;
const QUICK_MS = 50;

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
): Promise<PointRange[]> {
  if (deviceIds.length === 0 || window.fromMs > window.toMs) return [];
  const spans: PointRange[] = [];
  for (const box of boxes) {
    // Rows first: one that is packed between the two statements is seen twice, never not at all.
    spans.push(...(await rowSpans(sql, deviceIds, box, window)));
    spans.push(...(await packedSpans(sql, deviceIds, box, window)));
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
): Promise<PointRange[]> {
  const rows = await sql<SpanRow[]>`
    select device_id, first_at as first, last_at as last from packed_points
    where device_id = any(${arrayLiteral(deviceIds)}::bigint[])
      and first_at between ${new Date(weekStartMs(fromMs))} and ${new Date(toMs)} and last_at >= ${new Date(fromMs)}
      and north >= ${minY} and south <= ${maxY}
      and case when west <= east then west <= ${maxX} and east >= ${minX} else west <= ${maxX} or east >= ${minX} end`;
  return rows.map((row) => spanOf(row));
}

/**
 * The times in which devices have rows in the box: by the boxes of rows where there are any, which say at what times to
 * look, and by the rows of all other times.
 */
async function rowSpans(
  sql: Sql,
  deviceIds: readonly number[],
  box: IndexBox,
  { fromMs, toMs }: TimeWindow,
): Promise<PointRange[]> {
  const boxed = await selectBoxedTime(sql);
  const boxedFromMs = Math.max(fromMs, boxed?.fromMs ?? Number.POSITIVE_INFINITY);
  const boxedToMs = Math.min(toMs, (boxed?.toMs ?? Number.NEGATIVE_INFINITY) - 1);
  const ofAll = (window: TimeWindow) =>
    spansInWindows(
      sql,
      deviceIds.map((deviceId) => ({ deviceId, ...window })),
      box,
    );
  if (boxedFromMs > boxedToMs) return ofAll({ fromMs, toMs });
  const windows = await selectBoxedWindows(sql, deviceIds, box, { fromMs: boxedFromMs, toMs: boxedToMs });
  return [
    ...(await ofAll({ fromMs, toMs: boxedFromMs - 1 })),
    ...(await spansInWindows(sql, windows, box)),
    ...(await ofAll({ fromMs: boxedToMs + 1, toMs })),
  ];
}

/** Looks at every row of these windows. Nobody knows how many they are: a statement takes on what the last one had time for. */
async function spansInWindows(sql: Sql, all: readonly PointRange[], box: IndexBox): Promise<PointRange[]> {
  const windows = all.filter(({ fromMs, toMs }) => fromMs <= toMs);
  const spans: PointRange[] = [];
  let size = FIRST_WINDOWS;
  for (let at = 0; at < windows.length; ) {
    const startMs = performance.now();
    spans.push(...(await spansIn(sql, windows.slice(at, at + size), box)));
    at += size;
    size = performance.now() - startMs < QUICK_MS ? 4 * size : FIRST_WINDOWS;
  }
  return spans;
}

async function spansIn(
  sql: Sql,
  windows: readonly PointRange[],
  { minX, minY, maxX, maxY }: IndexBox,
): Promise<PointRange[]> {
  const earliestMs = windows.reduce((ms, { fromMs }) => Math.min(ms, fromMs), Number.POSITIVE_INFINITY);
  const latestMs = windows.reduce((ms, { toMs }) => Math.max(ms, toMs), Number.NEGATIVE_INFINITY);
  const rows = await sql<SpanRow[]>`
    select w.id as device_id, p.first, p.last
    from unnest(
      ${arrayLiteral(windows.map((each) => each.deviceId))}::bigint[],
      ${arrayLiteral(windows.map((each) => each.fromMs))}::float8[],
      ${arrayLiteral(windows.map((each) => each.toMs))}::float8[]) w (id, since, until)
    cross join lateral (
      select min(recorded_at) as first, max(recorded_at) as last from position
      where device_id = w.id and recorded_at >= to_timestamp(w.since / 1000)
        and recorded_at <= to_timestamp(w.until / 1000)
        and recorded_at between ${new Date(earliestMs)} and ${new Date(latestMs)}
        and latitude between ${minY} and ${maxY} and longitude between ${minX} and ${maxX}) p
    where p.first is not null`;
  return rows.map((row) => spanOf(row));
}

function spanOf({ device_id: deviceId, first, last }: SpanRow): PointRange {
  return { deviceId, fromMs: first.getTime(), toMs: last.getTime() };
}

function clipped(span: PointRange, window: TimeWindow): PointRange {
  return {
    ...span,
    fromMs: Math.max(span.fromMs, window.fromMs),
    toMs: Math.min(span.toMs, window.toMs),
  };
}

function merged(spans: readonly PointRange[], apartMs: number): PointRange[] {
  const result: PointRange[] = [];
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
