import { DAY_MS } from '../lib/durations.ts';
import { weekStartMs } from '../postgres/partitions.ts';
import type { Tx } from '../postgres/sql.ts';
import { type PointColumns, sliceColumns } from './codec/pointColumns.ts';
import { pointsOf, type Stretch, selectStretch, type WantedColumns } from './stretches.sql.ts';

/** Points that follow each other in time, column by column. A point without an odometer has NaN there. */
export interface PointPage {
  readonly count: number;
  readonly recordedAtMs: Float64Array;
  readonly lats: Float64Array;
  readonly lngs: Float64Array;
  readonly altitudesM: Float64Array;
  readonly speedsKmh: Float64Array;
  readonly headings: Float64Array;
  readonly satellites: Int32Array;
  readonly odometersKm: Float64Array;
  /** Null unless they were asked for. */
  readonly marks: PointMarks | null;
}

/** How points came, in the order of the page. */
export interface PointMarks {
  /** NaN: not recorded. */
  readonly receivedAtMs: Float64Array;
  readonly late: Uint8Array;
}

/** Whether a point was late, in PointMarks. Late ones were stored and not evaluated. */
export const LATENESS = { inTime: 0, late: 1, notRecorded: 2 } as const;

/** Both ends are included. */
export interface TimeWindow {
  readonly fromMs: number;
  readonly toMs: number;
}

/** The device was deleted, or left the worlds of the reader. */
export class DeviceGone extends Error {
  override name = 'DeviceGone';
}

/** A page takes a third of a megabyte. */
export const PAGE_POINTS = 4_096;
const WEEK_MS = 7 * DAY_MS;
/** After weeks without a point the next statement looks at so many times as many. */
const EMPTY_GROWTH = 8;

/**
 * The points of a device between two instants, both included, oldest first. A connection is held only while a stretch
 * is read: up to 4 096 rows and some packed days. The stretch after the one whose pages are yielded is read beside the
 * reader's work. Points that are stored meanwhile may be there or not. Columns that are not wanted may be empty. Throws
 * DeviceGone and DamagedPoints.
 */
export async function* pointPages(
  sql: Tx,
  worldIds: readonly number[],
  deviceId: number,
  window: TimeWindow,
  wanted: WantedColumns = 'plain',
): AsyncGenerator<PointPage, void, undefined> {
  const read = (span: TimeWindow) => selectStretch(sql, worldIds, deviceId, span, wanted);
  for await (const stretch of stretchesIn(window, read)) yield* pagesOf(stretch);
}

/** The pages of a stretch. Packed points are unpacked when they are asked for. Throws DamagedPoints. */
export function* pagesOf(stretch: Stretch): Generator<PointPage, void, undefined> {
  for (const points of pointsOf(stretch)) {
    for (let at = 0; at < points.count; at += PAGE_POINTS) {
      yield pageOf(sliceColumns(points, at, Math.min(at + PAGE_POINTS, points.count)), stretch.wanted);
    }
  }
}

/** The stretches that `read` finds, one after the other, oldest first. It returns the first of a window, or null. */
export async function* stretchesIn<Read extends Stretch>(
  window: TimeWindow,
  read: (span: TimeWindow) => Promise<Read | null>,
): AsyncGenerator<Read, void, undefined> {
  let fromMs = window.fromMs;
  let weeks = 1;
  const readNext = (): Promise<Read | null> => {
    const toMs = Math.min(window.toMs, weekStartMs(fromMs) + weeks * WEEK_MS - 1);
    const stretch = read({ fromMs, toMs });
    // The reader may have left when it fails. Whoever waits for it still gets the error.
    stretch.catch(() => undefined);
    return stretch;
  };
  let next = fromMs <= window.toMs ? readNext() : null;
  while (next !== null) {
    const stretch: Read | null = await next;
    if (stretch === null) throw new DeviceGone('the device is not there any more');
    weeks = stretch.isEmpty ? weeks * EMPTY_GROWTH : 1;
    fromMs = stretch.toMs + 1;
    next = fromMs <= window.toMs ? readNext() : null;
    yield stretch;
  }
}

/** The points of a page from `start` on and before `end`, in the same memory. */
export function slicePage(page: PointPage, start: number, end: number): PointPage {
  const { marks } = page;
  return {
    count: end - start,
    recordedAtMs: page.recordedAtMs.subarray(start, end),
    lats: page.lats.subarray(start, end),
    lngs: page.lngs.subarray(start, end),
    altitudesM: page.altitudesM.subarray(start, end),
    speedsKmh: page.speedsKmh.subarray(start, end),
    headings: page.headings.subarray(start, end),
    satellites: page.satellites.subarray(start, end),
    odometersKm: page.odometersKm.subarray(start, end),
    marks:
      marks === null
        ? null
        : {
            receivedAtMs: marks.receivedAtMs.subarray(start, end),
            late: marks.late.subarray(start, end),
          },
  };
}

function pageOf(points: PointColumns, wanted: WantedColumns): PointPage {
  const { receivedAtMs, lates, satellites, ...columns } = points;
  const marks = wanted === 'marked' ? { receivedAtMs, late: Uint8Array.from(lates, latenessOf) } : null;
  return { ...columns, satellites: Int32Array.from(satellites), marks };
}

function latenessOf(late: number): number {
  if (Number.isNaN(late)) return LATENESS.notRecorded;
  return late === 1 ? LATENESS.late : LATENESS.inTime;
}
