import { type NaiveArea, NaiveReplay } from '../../ingest/naiveReplay.ts';
import type { AreaBody } from '../../ingest/traces/trace.ts';

/**
 * A road with places in a row, 829 m apart, and areas over some of them: whether an area contains a place can be
 * found by counting, without any geometry.
 */
export const PLACES = 10;

const FIRST = { lat: 41.9, lng: 12.4 };
const STEP_DEGREES = 0.01;
const STEP_M = 829;
const THRESHOLDS = [0, 0, 20, 60, 120];

export interface RoadArea {
  /** The places in it: from, to. */
  readonly reach: readonly [number, number];
  readonly dwellSeconds: number;
  /** For POST and PATCH. */
  readonly body: AreaBody & { readonly name: string };
}

export function placeAt(place: number): { latitude: number; longitude: number } {
  return { latitude: FIRST.lat, longitude: FIRST.lng + place * STEP_DEGREES };
}

/** An area of any of the four kinds. */
export function anyRoadArea(name: string, random: () => number): RoadArea {
  const dice = (sides: number): number => Math.floor(random() * sides);
  const from = dice(PLACES);
  const to = Math.min(PLACES - 1, from + dice(4));
  const dwellSeconds = THRESHOLDS[dice(THRESHOLDS.length)] as number;
  const form = from === to && dice(2) === 0 ? spot(from) : (FORMS[dice(FORMS.length)] as Form)(from, to);
  return { reach: [from, to], dwellSeconds, body: { name, dwell_seconds: dwellSeconds, ...form } };
}

/** The same area as the naive replay takes it. */
export function naiveArea(
  id: number,
  worldId: number,
  { reach: [from, to], dwellSeconds }: RoadArea,
): NaiveArea {
  const contains = (_lat: number, lng: number): boolean => {
    const place = Math.round((lng - FIRST.lng) / STEP_DEGREES);
    return place >= from && place <= to;
  };
  return { id, worldId, dwellSeconds, contains };
}

export interface RoadPoint {
  readonly recorded_at: number;
  readonly latitude: number;
  readonly longitude: number;
}

/** A geofence event in short, to be compared. */
export interface RoadEvent {
  readonly areaId: number;
  readonly event: string;
  readonly occurredAt: string;
  readonly enteredAt: string;
}

/** What the points of one device, none of them late, must produce in areas that never change. */
export function replayRoad(areas: ReadonlyMap<number, RoadArea>, points: readonly RoadPoint[]): RoadEvent[] {
  const naive = new NaiveReplay();
  for (const [id, area] of areas) naive.areas.set(id, naiveArea(id, 1, area));
  return points
    .toSorted((a, b) => a.recorded_at - b.recorded_at)
    .flatMap(({ recorded_at: recordedAtMs, latitude: lat, longitude: lng }) =>
      naive
        .point(1, 1, { lat, lng, recordedAtMs }, () => undefined)
        .map(({ areaId, direction, enteredAtMs }) => ({
          areaId,
          event: direction,
          occurredAt: new Date(recordedAtMs).toISOString(),
          enteredAt: new Date(enteredAtMs).toISOString(),
        })),
    );
}

type Form = (from: number, to: number) => AreaBody;

const at = (place: number, lat = FIRST.lat) => ({ lat, lng: FIRST.lng + place * STEP_DEGREES });

const spot = (place: number): AreaBody => ({ type: 'point', center: at(place) });

const FORMS: readonly Form[] = [
  (from, to) => ({
    type: 'circle',
    center: at((from + to) / 2),
    radius_m: ((to - from) / 2 + 0.5) * STEP_M,
  }),
  (from, to) => ({
    type: 'polygon',
    points: [at(from - 0.5, 41.8), at(to + 0.5, 41.8), at(to + 0.5, 42), at(from - 0.5, 42)],
  }),
  (from, to) => ({ type: 'polyline', points: [at(from - 0.1), at(to + 0.1)], buffer_m: 100 }),
];
