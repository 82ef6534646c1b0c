import { invariant } from '../../base/invariant.ts';
import { CopiedRow } from '../sql/copiedRow.ts';
import { weekStartMs } from '../sql/partitions.ts';
import type { Tx } from '../sql/sql.ts';
import { instant, integers } from '../sql/sqlText.ts';

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

/** A page takes a third of a megabyte and a few milliseconds of a connection. */
export const PAGE_POINTS = 4_096;
const WEEK_MS = 7 * 86_400_000;
/** After weeks without a point the next statement looks at so many times as many. */
const EMPTY_GROWTH = 8;

/**
 * The points of a device between two instants, both included, oldest first. A connection is held only while a page is
 * read. The page after the one that was yielded is read beside the reader's work. Points that are stored meanwhile may
 * be there or not. `withMarks`: with how they came. Throws DeviceGone.
 */
export async function* pointPages(
  sql: Tx,
  worldIds: readonly number[],
  deviceId: number,
  window: TimeWindow,
  withMarks = false,
): AsyncGenerator<PointPage, void, undefined> {
  let fromMs = window.fromMs;
  let weeks = 1;
  const read = (): Promise<PointPage> => {
    const toMs = Math.min(window.toMs, weekStartMs(fromMs) + weeks * WEEK_MS - 1);
    const page = selectPage(sql, worldIds, deviceId, { fromMs, toMs }, withMarks);
    // The reader may have left when it fails. Whoever waits for the page still gets the error.
    page.catch(() => undefined);
    return page;
  };
  let next = fromMs <= window.toMs ? read() : null;
  while (next !== null) {
    const page: PointPage = await next;
    if (page.count === PAGE_POINTS) {
      fromMs = (page.recordedAtMs[page.count - 1] as number) + 1;
    } else {
      fromMs = weekStartMs(fromMs) + weeks * WEEK_MS;
      weeks = page.count === 0 ? weeks * EMPTY_GROWTH : 1;
    }
    next = fromMs <= window.toMs ? read() : null;
    if (page.count > 0) yield page;
  }
}

/** At most PAGE_POINTS points. The window says which partitions are looked at, so it should be short. */
async function selectPage(
  sql: Tx,
  worldIds: readonly number[],
  deviceId: number,
  { fromMs, toMs }: TimeWindow,
  withMarks: boolean,
): Promise<PointPage> {
  const page = emptyPage(withMarks);
  const { marks } = page;
  const row = new CopiedRow();
  let count = 0;
  let isThere = false;
  // A device without points gives one row without values; one that is not there gives none.
  const query = sql`
    select p.* from device d left join lateral (
      select recorded_at, latitude, longitude, altitude_m, speed_kmh, heading, satellites, odometer_km${withMarks ? MARK_COLUMNS(sql) : NO_COLUMNS(sql)}
      from position
      where device_id = ${integers([deviceId])} and recorded_at between ${instant(fromMs)} and ${instant(toMs)}
      order by recorded_at limit ${integers([PAGE_POINTS])}) p on true
    where d.id = ${integers([deviceId])} and d.world_id in (${integers(worldIds)})`;
  await sql.copy(query, (bytes) => {
    row.feed(bytes);
    while (row.next()) {
      isThere = true;
      const recordedAtMs = row.timestampMsOrNull();
      if (recordedAtMs === null) return;
      page.recordedAtMs[count] = recordedAtMs;
      page.lats[count] = row.float8();
      page.lngs[count] = row.float8();
      page.altitudesM[count] = row.float8();
      page.speedsKmh[count] = row.float8();
      page.headings[count] = row.float8();
      page.satellites[count] = row.int4();
      page.odometersKm[count] = row.float8OrNull() ?? Number.NaN;
      if (marks !== null) readMarks(row, marks, count);
      count++;
    }
  });
  if (!isThere) throw new DeviceGone('the device is not there any more');
  invariant(count <= PAGE_POINTS, 'a page has a limit');
  return { ...page, count };
}

const MARK_COLUMNS = (sql: Tx) => sql`, received_at, late`;
const NO_COLUMNS = (sql: Tx) => sql``;

function readMarks(row: CopiedRow, marks: PointMarks, n: number): void {
  marks.receivedAtMs[n] = row.timestampMsOrNull() ?? Number.NaN;
  const late = row.boolOrNull();
  marks.late[n] = late === null ? LATENESS.notRecorded : late ? LATENESS.late : LATENESS.inTime;
}

function emptyPage(withMarks: boolean): Omit<PointPage, 'count'> {
  const column = () => new Float64Array(PAGE_POINTS);
  return {
    recordedAtMs: column(),
    lats: column(),
    lngs: column(),
    altitudesM: column(),
    speedsKmh: column(),
    headings: column(),
    satellites: new Int32Array(PAGE_POINTS),
    odometersKm: column(),
    marks: withMarks ? { receivedAtMs: column(), late: new Uint8Array(PAGE_POINTS) } : null,
  };
}
