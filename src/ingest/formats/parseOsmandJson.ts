import { fail, type Result } from '../../lib/result.ts';
import { objectOrEmpty } from './objectOrEmpty.ts';
import { type ParsedPoint, parsePoint } from './parsePoint.ts';
import { REJECTIONS, type Rejection } from './rejection.ts';

/** The parts that are read of what Traccar Client 9 sends. */
interface AppBody {
  location?: unknown;
  device_id?: unknown;
}
interface AppLocation {
  timestamp?: unknown;
  coords?: unknown;
  alarm?: unknown;
  extras?: unknown;
}
interface AppCoords {
  latitude?: unknown;
  longitude?: unknown;
  altitude?: unknown;
  speed?: unknown;
  heading?: unknown;
}

const KMH_PER_M_S = 3.6;

/**
 * The JSON body of Traccar Client 9 at /osmand → a fix, under the rules of parsePoint; `ignored` uses the names of
 * /positions. The form is that of its library for locations in the background: speed in m/s, -1 where speed or heading
 * is unknown. Its odometer counts the way of the phone since the app was installed and is not read. Without a
 * timestamp: `nowMs`. No location is INVALID_BODY, no device INVALID_IMEI, no coords INVALID_COORDINATES.
 */
export function parseOsmandJson(
  body: unknown,
  nowMs: number,
  oldestMs: number,
): Result<ParsedPoint, Rejection> {
  const { location: locationPart, device_id }: AppBody = objectOrEmpty(body);
  if (typeof locationPart !== 'object' || locationPart === null || Array.isArray(locationPart)) {
    return fail(REJECTIONS.INVALID_BODY);
  }
  const location: AppLocation = locationPart;
  const coords: AppCoords = objectOrEmpty(location.coords);
  const extras: { alarm?: unknown } = objectOrEmpty(location.extras);
  const point = {
    imei: device_id,
    recorded_at: location.timestamp ?? nowMs,
    latitude: coords.latitude,
    longitude: coords.longitude,
    altitude_m: coords.altitude,
    speed_kmh: typeof coords.speed === 'number' ? coords.speed * KMH_PER_M_S : coords.speed,
    heading: coords.heading,
    alarm: extras.alarm ?? location.alarm,
  };
  return parsePoint(point, nowMs, oldestMs);
}
