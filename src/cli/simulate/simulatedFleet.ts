import type { LatLng } from '../../geo/wgs84.ts';
import { formatIso, MINUTE_MS } from '../../lib/time.ts';
import type { SimulatedVehicle } from './simulatedVehicle.ts';
import { advance, createVehicle, vehicleEastM, vehicleNorthM } from './simulatedVehicle.ts';
import { createStreets, nextRandom, type Streets } from './streets.ts';

export interface FleetOptions {
  readonly imeis: readonly string[];
  /** Equal options and equal steps of a vehicle give equal points, whatever the other vehicles do. */
  readonly seed: number;
  readonly startMs: number;
  readonly centre: LatLng;
}

export interface SimulatedFleet {
  /**
   * Drives one vehicle on to `nowMs` and returns its point: about a microsecond, with some 30 ns more for each
   * second driven, at most 300 of them. Throws RangeError when no vehicle has that index.
   */
  step(vehicleIndex: number, nowMs: number): SimulatedPoint;
}

/** A point as POST /positions takes it. */
export interface SimulatedPoint {
  readonly imei: string;
  readonly recorded_at: string;
  readonly latitude: number;
  readonly longitude: number;
  readonly altitude_m: number;
  readonly speed_kmh: number;
  readonly heading: number;
  readonly satellites: number;
  readonly odometer_km: number;
  readonly ignition: boolean;
  readonly alarm?: string;
  readonly rfid?: string;
}

/** They have been driving for so long when the fleet starts, so that its first points are of moving vehicles. */
const HEAD_START_MS = 20_000;

/** The first vehicle's first trip: short, so that a demo of three minutes shows it parking. */
const FIRST_TRIP_MS = 30_000;
const SHORTEST_TRIP_MS = MINUTE_MS;
const LONGEST_TRIP_MS = 900_000;

/** Every fifth vehicle starts parked, and so much later its rest ends. */
const PARKED_EVERY = 5;
const PARKED_AT = 2;
const SHORTEST_REST_MS = 135_000;
const LONGEST_REST_MS = 255_000;

const RFID_CHANCE = 0.5;
const ALARM_CHANCE = 0.2;
const ALARMS = ['lowBattery', 'powerCut', 'tampering'];

/**
 * Vehicles that drive through a seeded town, wait at its lights, park with the ignition off and set out again,
 * now and then with a driver's tag or an alarm in the first point of a trip.
 */
export function createFleet({ imeis, seed, startMs, centre }: FleetOptions): SimulatedFleet {
  const streets = createStreets(seed, centre);
  const vehicles = imeis.map((_, index) => createFleetVehicle(streets, seed, index, startMs));
  const reported = new Uint32Array(imeis.length); // departures that a point has reported
  return {
    step(index, nowMs) {
      const vehicle = vehicles[index];
      const imei = imeis[index];
      if (vehicle === undefined || imei === undefined) throw new RangeError(`no vehicle ${index}`);
      advance(vehicle, streets, nowMs);
      const point = pointOf(vehicle, streets, imei, nowMs);
      if (reported[index] === vehicle.departures) return point;
      reported[index] = vehicle.departures;
      return { ...point, ...departureNews(vehicle) };
    },
  };
}

function createFleetVehicle(
  streets: Streets,
  seed: number,
  index: number,
  startMs: number,
): SimulatedVehicle {
  const random = { state: Math.imul(seed + 1, 0x9e3779b1) ^ Math.imul(index + 1, 0x85ebca6b) };
  const tripMs = SHORTEST_TRIP_MS + (LONGEST_TRIP_MS - SHORTEST_TRIP_MS) * nextRandom(random);
  const restMs = SHORTEST_REST_MS + (LONGEST_REST_MS - SHORTEST_REST_MS) * nextRandom(random);
  const tripEndsMs = startMs + (index === 0 ? FIRST_TRIP_MS : tripMs);
  const vehicle = createVehicle(streets, random.state, startMs - HEAD_START_MS, tripEndsMs);
  if (index % PARKED_EVERY === PARKED_AT) {
    vehicle.phase = 'parked';
    vehicle.phaseEndsMs = startMs + restMs;
  }
  return vehicle;
}

function pointOf(vehicle: SimulatedVehicle, streets: Streets, imei: string, nowMs: number): SimulatedPoint {
  const eastM = vehicleEastM(vehicle, streets);
  const northM = vehicleNorthM(vehicle, streets);
  const { lat, lng } = streets.latLng(eastM, northM);
  return {
    imei,
    recorded_at: formatIso(nowMs),
    latitude: rounded(lat, 1e7),
    longitude: rounded(lng, 1e7),
    altitude_m: rounded(40 + 15 * Math.sin(eastM / 900) + 10 * Math.cos(northM / 700), 10),
    speed_kmh: rounded(vehicle.speedMps * 3.6, 10),
    heading: rounded(streets.turnDeg + 90 * vehicle.direction, 1) % 360,
    satellites: Math.round(10 + 2.5 * Math.sin(nowMs / 97_000 + eastM / 300) + 1.5 * Math.sin(northM / 110)),
    odometer_km: rounded(vehicle.odometerM / 1_000, 1e3),
    ignition: vehicle.phase !== 'parked',
  };
}

/** The RFID tag and the alarm that the first point of a trip may have. */
function departureNews(vehicle: SimulatedVehicle): { rfid?: string; alarm?: string } {
  const news: { rfid?: string; alarm?: string } = {};
  if (nextRandom(vehicle) < RFID_CHANCE) {
    news.rfid = Math.floor(nextRandom(vehicle) * 2 ** 32)
      .toString(16)
      .toUpperCase()
      .padStart(8, '0');
  }
  if (nextRandom(vehicle) < ALARM_CHANCE) {
    const alarm = ALARMS[Math.floor(nextRandom(vehicle) * ALARMS.length)];
    if (alarm !== undefined) news.alarm = alarm;
  }
  return news;
}

function rounded(value: number, perUnit: number): number {
  return Math.round(value * perUnit) / perUnit;
}

/** Type allocation code of made-up devices: eight digits in front of each IMEI, no maker's. */
const TYPE_CODE = '35999999';
const SERIAL_DIGITS = 6;

/** The number of serial numbers of one type. */
export const SIMULATED_MAX = 10 ** SERIAL_DIGITS;

/** The IMEI of the made-up device of this index (0 to SIMULATED_MAX - 1), with a true check digit. */
export function simulatedImei(index: number): string {
  const body = TYPE_CODE + String(index).padStart(SERIAL_DIGITS, '0');
  return body + luhnDigit(body);
}

/** The digit that makes the Luhn sum of `body` and itself a multiple of ten (ISO/IEC 7812-1 annex B). */
function luhnDigit(body: string): number {
  let sum = 0;
  for (const [place, digit] of [...body].reverse().entries()) {
    const weighted = Number(digit) * (place % 2 === 0 ? 2 : 1);
    sum += weighted > 9 ? weighted - 9 : weighted;
  }
  return (10 - (sum % 10)) % 10;
}
