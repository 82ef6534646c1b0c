import { type Shape, shapeOf } from '../areas/shape.ts';
import type { Stay } from '../devices/stays.ts';
import { type StoredPast, selectPast } from '../history/past.sql.ts';
import { DeviceGone, type TimeWindow } from '../history/pointPages.sql.ts';
import { type Stretch, selectStretch } from '../history/stretches.sql.ts';
import { type RefusedTime, selectRefused } from '../ingest/deviceStates.sql.ts';
import { DAY_MS } from '../lib/durations.ts';
import type { Sql, Tx } from '../postgres/sql.ts';
import {
  type PassageSource,
  type RecordedPassage,
  selectLastPassage,
  selectPassages,
} from './areaRecord.sql.ts';
import type { ExplainRequest } from './explainRequest.ts';
import type { RecordedEvent } from './explanation.ts';
import { type PastShape, type Situation, situationsOf } from './situations.ts';
import { selectLastPoints } from './surveyPoints.sql.ts';

/** Where memberships changed, this much more is read before the window. */
const CHANGED_LOOK_BACK_MS = 31 * DAY_MS;
const NEVER_MS = 0;

/** What is known beforehand of the points of a window. */
export interface AreaRecord {
  readonly situations: readonly Situation[];
  readonly source: PassageSource;
  /** Of the device in the area, before the point at `startMs`. */
  readonly stay: Stay | null;
  /** From when on points are read, to know who was inside at the beginning of the window. */
  readonly startMs: number;
  readonly createdAtMs: number;
  readonly refused: RefusedTime | null;
}

/** Null when the area does not exist any more. */
export async function readRecord(tx: Tx, request: ExplainRequest): Promise<AreaRecord | null> {
  const { areaId, deviceId, imei, fromMs } = request;
  const past = await selectPast(tx, areaId, deviceId);
  if (past === null) return null;
  const createdAtMs = past.createdAtMs;
  const situations = situationsOf({ ...past, revisions: withShapes(past) });
  const source: PassageSource = { areaId, deviceId, imei, worldIds: worldsOf(past) };
  const last = await selectLastPassage(tx, source, fromMs);
  const startMs = await startOf(tx, request, situations, last);
  const refused = await selectRefused(tx, deviceId);
  return { situations, source, stay: stayAfter(areaId, last), startMs, createdAtMs, refused };
}

/** Points with what is recorded of them. */
export interface RecordedStretch extends Stretch {
  readonly recorded: readonly RecordedEvent[];
}

/** The first points of a span and their events, of one snapshot: a point is never there without its event. Throws DeviceGone. */
export function readRecorded(
  sql: Sql,
  { worldIds, deviceId, fromMs }: ExplainRequest,
  source: PassageSource,
  span: TimeWindow,
): Promise<RecordedStretch> {
  return sql.begin('isolation level repeatable read read only', async (tx) => {
    const stretch = await selectStretch(tx, worldIds, deviceId, span, 'marked');
    if (stretch === null) throw new DeviceGone('the device is not there any more');
    const inWindow = { fromMs: Math.max(span.fromMs, fromMs), toMs: stretch.toMs };
    const passages = await selectPassages(tx, source, inWindow);
    const recorded = passages.map(
      ({ id, direction, occurredAtMs, enteredAtMs, worldId }): RecordedEvent => ({
        ...{ id, direction, occurredAtMs, enteredAtMs },
        isReadable: worldIds.includes(worldId),
      }),
    );
    return { ...stretch, recorded };
  });
}

function worldsOf({ revisions, deviceWorlds }: StoredPast): number[] {
  return [
    ...new Set([...revisions.map(({ worldId }) => worldId), ...deviceWorlds.map(({ value }) => value)]),
  ];
}

function withShapes({ revisions }: StoredPast) {
  const shapes = new Map<number, PastShape>();
  return revisions.map(({ sinceMs, worldId, dwellSeconds, geometry, form }) => {
    const shape = shapes.get(form) ?? lazyShape(() => shapeOf(geometry));
    shapes.set(form, shape);
    return { sinceMs, worldId, dwellSeconds, shape };
  });
}

function lazyShape(compile: () => Shape): PastShape {
  let shape: Shape | null = null;
  return {
    compiled: () => {
      shape ??= compile();
      return shape;
    },
  };
}

function stayAfter(areaId: number, event: RecordedPassage | undefined): Stay | null {
  if (event?.direction !== 'entry') return null;
  return { areaId, insideSinceMs: event.enteredAtMs, confirmedAtMs: event.occurredAtMs };
}

/**
 * Whether an entry was made before the window is known from the events. Whether a stay was pending, the points say: it
 * began less than the longest minimum stay before the last evaluated point. Where the area did not always watch the device,
 * a stay may have ended without an exit, so all points since the last event are read, up to a month.
 */
async function startOf(
  tx: Tx,
  { deviceId, fromMs }: ExplainRequest,
  situations: readonly Situation[],
  last: RecordedPassage | undefined,
): Promise<number> {
  const afterLastMs = last === undefined ? Number.NEGATIVE_INFINITY : last.occurredAtMs + 1;
  const isChanged = situations.some(
    ({ state, sinceMs }) => state === 'not_watched' && sinceMs > afterLastMs - DAY_MS,
  );
  if (isChanged && last?.direction === 'entry') return Math.max(afterLastMs, fromMs - CHANGED_LOOK_BACK_MS);
  const dwellMs = 1_000 * Math.max(...situations.map(({ dwellSeconds }) => dwellSeconds));
  // Of a stay that goes on, the last point before the window is shown.
  if (dwellMs === 0 && last?.direction !== 'entry') return fromMs;
  const [newest] = await selectLastPoints(tx, [deviceId], fromMs, NEVER_MS);
  return newest === undefined
    ? fromMs
    : Math.min(fromMs, Math.max(newest.recordedAtMs - dwellMs, afterLastMs));
}
