import { placeAt, replayRoad } from '../../support/ingest/road.ts';
import {
  isAcknowledged,
  type MovingArea,
  type RecordedCall,
  type RecordedPoint,
  type RecordedPoints,
  type RestEvent,
  type RunRecord,
  type Violation,
} from '../record.ts';
import { keyOf } from './points.ts';
import type { Registers } from './registers.ts';

/** The points of one device in one batch, in order of time. They are stored by one transaction. */
interface Part {
  readonly points: readonly RecordedPoint[];
  /** It was given up and stored: at its place among the others, by the transaction of the next one, or at any later time. */
  readonly isDoubtful: boolean;
}

/** What may have become of a part that was given up, as digits: see `evaluated`. */
const FATES = 4;
const [LATE, JOINED, AFTER] = [1, 2, 3];

/**
 * Of areas that never change: the events are exactly those that a naive replay of the stored points has. Of batches that were
 * given up each combination of places is tried; the simulator gives up few of them.
 */
export function checkFixedAreas({ calls, fixedAreas, rest }: RunRecord): Violation[] {
  const areas = new Map(fixedAreas.map(({ id, area }) => [id, area]));
  const byDevice = Map.groupBy(
    rest.events.filter(({ areaId }) => areas.has(areaId)),
    ({ imei }) => imei,
  );
  return [...partsOfDevices(calls, rest.points)].flatMap(([imei, parts]): Violation[] => {
    const found = (byDevice.get(imei) ?? []).map(inShort);
    const doubts = parts.filter(({ isDoubtful }) => isDoubtful).length;
    let expected: string[] = [];
    for (let fates = 0; fates < FATES ** doubts; fates++) {
      expected = replayRoad(areas, evaluated(parts, fates)).map((event) =>
        inShort({
          ...event,
          occurredAtMs: Date.parse(event.occurredAt),
          enteredAtMs: Date.parse(event.enteredAt),
        }),
      );
      if (expected.join() === found.join()) return [];
    }
    const n = expected.findIndex((event, k) => event !== found[k]);
    const first = n === -1 ? expected.length : n;
    return [
      {
        rule: 'events are those of a naive replay',
        message: `event ${first} of ${imei} is ${found[first] ?? 'missing'}, and a replay has ${expected[first] ?? 'no more'}`,
      },
    ];
  });
}

const inShort = ({ areaId, event, occurredAtMs, enteredAtMs }: Omit<RestEvent, 'id' | 'imei'>): string =>
  `${event} of area ${areaId} at ${occurredAtMs} (since ${enteredAtMs})`;

/** What was stored of each device, in the order in which it was sent. */
function partsOfDevices(
  calls: readonly RecordedCall[],
  stored: RunRecord['rest']['points'],
): Map<string, Part[]> {
  const isStored = new Set(stored.map(keyOf));
  const batches = Map.groupBy(
    calls.filter((call): call is RecordedPoints => call.kind === 'points'),
    ({ batch }) => batch,
  );
  const parts = new Map<string, Part[]>();
  for (const [, attempts] of [...batches].sort(([a], [b]) => a - b)) {
    const isDoubtful = !attempts.some(isAcknowledged);
    const points = (attempts[0]?.points ?? []).filter((point) => isStored.has(keyOf(point)));
    for (const [imei, own] of Map.groupBy(points, (point) => point.imei)) {
      const all = parts.get(imei) ?? [];
      parts.set(imei, all);
      all.push({ points: own.toSorted((a, b) => a.atMs - b.atMs), isDoubtful });
    }
  }
  return parts;
}

/**
 * The points that were not late. `fates`: a digit for each doubtful part. It was stored after the next one of the device, and so
 * was late as a whole; or it waited in a pod until the next one came there, and both were evaluated together in order of time; or
 * it was stored right after the next one, which was older, and is late in part or not at all.
 */
function evaluated(parts: readonly Part[], fates: number) {
  const points: { recorded_at: number; latitude: number; longitude: number }[] = [];
  let newestMs = Number.NEGATIVE_INFINITY;
  let rest = fates;
  let waiting: readonly RecordedPoint[] = [];
  let following: readonly RecordedPoint[] = [];
  for (const part of parts) {
    const fate = part.isDoubtful ? rest % FATES : 0;
    if (part.isDoubtful) rest = Math.floor(rest / FATES);
    if (fate === LATE) continue;
    if (fate === AFTER) {
      following = [...following, ...part.points];
      continue;
    }
    const together = [...waiting, ...part.points].sort((a, b) => a.atMs - b.atMs);
    waiting = fate === JOINED ? together : [];
    if (fate === JOINED) continue;
    for (const { atMs, place } of [...together, ...following]) {
      if (atMs <= newestMs) continue;
      newestMs = atMs;
      points.push({ recorded_at: atMs, ...placeAt(place) });
    }
    following = [];
  }
  return points;
}

/**
 * Of an area that moves: a point is evaluated against a place that the area may have had while the point was under way. The
 * device of a moving area sends one point after the other and repeats each until it is acknowledged.
 */
export function checkMovingAreas({ calls, movingAreas, rest }: RunRecord, registers: Registers): Violation[] {
  return movingAreas.flatMap((area) => checkMovingArea(area, calls, rest.events, registers));
}

function checkMovingArea(
  { id, register, imei, place }: MovingArea,
  calls: readonly RecordedCall[],
  events: readonly RestEvent[],
  registers: Registers,
): Violation[] {
  const found = Map.groupBy(
    events.filter((event) => event.areaId === id && event.imei === imei),
    ({ occurredAtMs }) => occurredAtMs,
  );
  const sent = calls.filter(
    (call): call is RecordedPoints => call.kind === 'points' && call.points[0]?.imei === imei,
  );
  let isInside = false;
  for (const [, attempts] of [...Map.groupBy(sent, ({ batch }) => batch)].sort(([a], [b]) => a - b)) {
    const [{ beginMs, points }] = attempts as [RecordedPoints];
    const end = attempts.find(isAcknowledged);
    const atMs = points[0]?.atMs ?? 0;
    for (const { event } of found.get(atMs) ?? []) {
      const message = `${event} of area ${id} at ${atMs} follows another`;
      if ((event === 'entry') === isInside) return [{ rule: 'events are those of a naive replay', message }];
      isInside = event === 'entry';
    }
    // It may have been stored by any of its attempts.
    const places = registers.possible(register, beginMs, end?.endMs ?? Infinity);
    const canBe = places.map((each) => Number(each) === place);
    if (canBe.includes(isInside) || end === undefined) continue;
    return [
      {
        rule: 'a point is evaluated against the areas of its time',
        message:
          `the point of ${imei} at ${atMs}, sent at ${Math.round(beginMs)} ms and acknowledged at ${Math.round(end.endMs)} ms, ` +
          `left it ${isInside ? 'inside' : 'outside'} area ${id}, which was at place ${places.join(' or ')}, not ${place}`,
      },
    ];
  }
  return [];
}
