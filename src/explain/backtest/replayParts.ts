import type { ProcessorBudget, Steps, WorkTurns } from '../../lib/workTurns.ts';
import type { Sql } from '../../postgres/sql.ts';
import {
  type DevicePart,
  type DeviceSpan,
  REPLAY_PAGE_POINTS,
  ReplayPage,
  readReplayPage,
  selectRecorded,
} from '../replayPages.sql.ts';
import type { AreaReplay, RecordedEvents } from './areaReplay.ts';
import type { CountedPart } from './surveyDevices.ts';

export interface ReplayPorts {
  readonly sql: Sql;
  readonly turns: Pick<WorkTurns<number | string>, 'run'>;
  /** Ends the work also between two pages. */
  readonly budget: ProcessorBudget;
}

export interface ReplayRequest {
  readonly accountId: number;
  readonly worldIds: readonly number[];
  /** Null: nothing is recorded. */
  readonly areaId: number | null;
  readonly fromMs: number;
  readonly toMs: number;
}

/** Devices of one page at most. */
const PAGE_DEVICES = 500;

/** The place from which the next page is read. */
interface Place {
  /** Of the part. */
  readonly n: number;
  readonly fromMs: number;
  /** How many points of the part are left, by what was counted. */
  readonly left: number;
}

/** A page with what its points produced when they came, by part. */
interface ReadPage {
  readonly place: Place;
  readonly page: ReplayPage;
  readonly recorded: readonly RecordedEvents[];
  readonly next: Place | null;
  /** See ReplayPage, which is used for another page when this one was evaluated. */
  readonly hasUnmarked: boolean;
}

export interface Replayed {
  /** How many recorded events the devices have in the window. */
  readonly recorded: number;
  /** Of some points it is not recorded whether they came late; they were replayed. */
  readonly hasUnmarked: boolean;
}

/**
 * Replays these devices. While one page is evaluated, the next is read. Rejects with what ends the budget.
 */
export async function replayParts(
  ports: ReplayPorts,
  request: ReplayRequest,
  parts: readonly CountedPart[],
  replay: AreaReplay,
): Promise<Replayed> {
  let recorded = 0;
  let hasUnmarked = false;
  let openPart = -1;
  const buffers = [new ReplayPage(), new ReplayPage()] as const;
  let turn = 0;
  const read = (place: Place): Promise<ReadPage> => {
    const reading = readPage(ports.sql, request, parts, place, buffers[turn++ % 2] as ReplayPage);
    // Whoever waits for the page gets the error; nobody does once the work has ended otherwise.
    reading.catch(() => undefined);
    return reading;
  };

  const [first] = parts;
  let reading = first === undefined ? null : read({ n: 0, fromMs: first.fromMs, left: first.count });
  while (reading !== null) {
    const current: ReadPage = await reading;
    reading = current.next === null ? null : read(current.next);
    try {
      const steps = ports.budget.spend(replayPage(replay, parts, current, openPart));
      openPart = await ports.turns.run(request.accountId, steps);
    } catch (error) {
      // The account's next backtest finds the connection free.
      await reading?.catch(() => undefined);
      throw error;
    }
    for (const events of current.recorded) recorded += events.size;
    hasUnmarked ||= current.hasUnmarked;
  }
  if (openPart !== -1) replay.end();
  return { recorded, hasUnmarked };
}

/** Returns the part of the last point. */
function* replayPage(
  replay: AreaReplay,
  parts: readonly DevicePart[],
  { place, page, recorded }: ReadPage,
  openPart: number,
): Steps<number> {
  let open = openPart;
  for (let start = 0, end = 0; start < page.count; start = end) {
    const n = page.parts[start] as number;
    end = start + 1;
    while (end < page.count && page.parts[end] === n) end++;
    if (place.n + n !== open) {
      if (open !== -1) replay.end();
      open = place.n + n;
      replay.begin(parts[open]?.imei ?? '');
    }
    yield* replay.take(page, start, end, recorded[n] ?? NOTHING);
  }
  return open;
}

const NOTHING: RecordedEvents = new Set();

/** Points and recorded events are of one snapshot: a point is never there without its event. */
function readPage(
  sql: Sql,
  request: ReplayRequest,
  parts: readonly CountedPart[],
  place: Place,
  page: ReplayPage,
): Promise<ReadPage> {
  const { areaId, worldIds, toMs } = request;
  const read = partsOfPage(parts, place);
  const result = (recorded: readonly RecordedEvents[]): ReadPage => ({
    place,
    page,
    recorded,
    next: nextPlace(parts, place, read.length, page),
    hasUnmarked: page.hasUnmarked,
  });
  if (areaId === null) return readReplayPage(sql, read, toMs, page).then(() => result([]));
  return sql.begin('isolation level repeatable read read only', async (tx) => {
    await readReplayPage(tx, read, toMs, page);
    return result(await selectRecorded(tx, worldIds, areaId, spansOf(request, read, page)));
  });
}

/** As many parts as fill a page, by what was counted; there may be more points now. */
function partsOfPage(parts: readonly CountedPart[], { n, fromMs, left }: Place): DevicePart[] {
  const taken: DevicePart[] = [{ ...(parts[n] as CountedPart), fromMs }];
  let points = left;
  for (let at = n + 1; at < parts.length && taken.length < PAGE_DEVICES; at++) {
    if (points >= REPLAY_PAGE_POINTS) break;
    const part = parts[at] as CountedPart;
    points += part.count;
    taken.push(part);
  }
  return taken;
}

function nextPlace(
  parts: readonly CountedPart[],
  place: Place,
  partsRead: number,
  page: ReplayPage,
): Place | null {
  if (!page.isFull) {
    const next = parts[place.n + partsRead];
    return next === undefined ? null : { n: place.n + partsRead, fromMs: next.fromMs, left: next.count };
  }
  const last = page.parts[page.count - 1] as number;
  const n = place.n + last;
  const read = page.count - page.parts.indexOf(last);
  const before = last === 0 ? place.left : (parts[n] as CountedPart).count;
  return { n, fromMs: (page.recordedAtMs[page.count - 1] as number) + 1, left: Math.max(0, before - read) };
}

/** What the page covers of the window, for each part whose points it has. */
function spansOf(
  { fromMs, toMs }: ReplayRequest,
  read: readonly DevicePart[],
  page: ReplayPage,
): DeviceSpan[] {
  const spanOf = (part: DevicePart, untilMs: number): DeviceSpan => ({
    imei: part.imei,
    fromMs: Math.max(part.fromMs, fromMs),
    toMs: untilMs,
  });
  if (!page.isFull) return read.map((part) => spanOf(part, toMs));
  const last = page.parts[page.count - 1] as number;
  const lastMs = page.recordedAtMs[page.count - 1] as number;
  return read.slice(0, last + 1).map((part, n) => spanOf(part, n === last ? lastMs : toMs));
}
