import type { StayLimit } from '../devices/stays/stayCounts.ts';
import type { DeviceEvent } from '../events/fleetEvent.ts';
import type { Span } from '../traces/span.ts';

/** One GPS fix as a device reported it, after parsing: every value is possible, the coordinates are never (0, 0). */
export interface Fix {
  readonly imei: string;
  readonly recordedAtMs: number;
  /**
   * The device's clock when it sent this, where that was later than the fix (a heartbeat that repeats its last one); it
   * may be wrong. null: not known.
   */
  readonly sentAtMs: number | null;
  readonly lat: number;
  readonly lng: number;
  readonly altitudeM: number;
  /** null: not reported, to be derived from the previous point. */
  readonly speedKmh: number | null;
  readonly heading: number;
  readonly satellites: number;
  readonly odometerKm: number | null;
  readonly ignition: boolean | null;
  readonly alarms: readonly string[];
  readonly rfid: string | null;
}

/** A parsed point and the device that sent it. */
export interface BatchPoint {
  readonly deviceId: number;
  readonly fix: Fix;
  /** That its events belong to; null: it is not traced. */
  readonly span?: Span | null;
}

/** A point that is newer than everything evaluated for its device before it. */
export interface InOrderPoint<Point extends BatchPoint = BatchPoint> {
  readonly point: Point;
  /** As reported, or derived from the previous point. */
  readonly speedKmh: number;
  /** How many device events it produced. */
  readonly eventCount: number;
}

export interface DeviceEventAt<Point extends BatchPoint = BatchPoint> {
  readonly point: Point;
  readonly occurredAtMs: number;
  readonly event: DeviceEvent;
}

/** What became of one point of a batch. */
export type FixOutcome = 'accepted' | 'late' | 'duplicate' | 'unknown_device' | 'too_complex' | RateExceeded;

/** Points that a device may store in a second, on average over an hour: those of an hour may come at once. */
export const POINTS_PER_SECOND = 10;

/** Of a point that is not stored, because its device has stored too many: when there is room for it. */
export interface RateExceeded {
  readonly retryAtMs: number;
}

/** Points of one device at which stays did not begin: the times of the first and the last, and how many by limit. */
export interface RefusedStays {
  readonly firstMs: number;
  readonly lastMs: number;
  readonly points: Readonly<Record<StayLimit, number>>;
}
