import { isAvenue, nextRandom, type RandomState, type Streets } from './streets.ts';

/** A vehicle in the plane of its streets. Changed by advance() only. */
export interface SimulatedVehicle extends RandomState {
  /** Up to when it has been simulated, epoch milliseconds. */
  timeMs: number;
  phase: 'driving' | 'stopping' | 'parked';
  /** When the trip or the rest ends. */
  phaseEndsMs: number;
  /** 0 north, 1 east, 2 south, 3 west, before the turn of the town: 0 and 2 along a column, 1 and 3 along a row. */
  direction: number;
  /** Which column or row it drives on, how far along, and the index of the junction ahead. */
  line: number;
  alongM: number;
  ahead: number;
  /** The direction in which it will leave that junction. */
  turnTo: number;
  speedMps: number;
  odometerM: number;
  /** Share of the speed limit that this driver uses. */
  pace: number;
  /** Departures so far: each is reported once, by the first point after it. */
  departures: number;
}

const ACCELERATION_MPS2 = 1.8;
const BRAKING_MPS2 = 2.2;
const TURNING_MPS = 5;
const STOP_LINE_M = 4;

const TRIP_MS = [240_000, 900_000] as const;
const REST_MS = [150_000, 360_000] as const;

/** Motion is computed in pieces of a second; after a longer silence only the last five minutes are driven. */
const PIECE_MS = 1_000;
const LONGEST_ADVANCE_MS = 300_000;

/** Every light shows green to the columns, then to the rows, and red to all in between. */
const LIGHT_CYCLE_S = 60;
const GREEN_S = 28;

/** A vehicle in the middle of a random block, standing there with its trip begun. */
export function createVehicle(
  streets: Streets,
  seed: number,
  timeMs: number,
  tripEndsMs: number,
): SimulatedVehicle {
  const random = { state: seed };
  const direction = Math.floor(nextRandom(random) * 4);
  const line = Math.floor(nextRandom(random) * streets.lines);
  const block = Math.floor(nextRandom(random) * (streets.lines - 1));
  const crossingsM = isColumn(direction) ? streets.rowsM : streets.columnsM;
  const vehicle: SimulatedVehicle = {
    state: random.state,
    timeMs,
    phase: 'driving',
    phaseEndsMs: tripEndsMs,
    direction,
    line,
    alongM: ((crossingsM[block] as number) + (crossingsM[block + 1] as number)) / 2,
    ahead: isForward(direction) ? block + 1 : block,
    turnTo: direction,
    speedMps: 0,
    odometerM: 0,
    pace: 0.85 + 0.2 * nextRandom(random),
    departures: 0,
  };
  vehicle.odometerM = Math.floor(nextRandom(vehicle) * 200_000_000);
  vehicle.turnTo = chooseTurn(vehicle, streets);
  return vehicle;
}

/** Moves the vehicle on to `toMs`: at most 300 pieces of work, whatever the gap. A time in its past changes nothing. */
export function advance(vehicle: SimulatedVehicle, streets: Streets, toMs: number): void {
  if (toMs <= vehicle.timeMs) return;
  const fromMs = Math.max(vehicle.timeMs, toMs - LONGEST_ADVANCE_MS);
  const pieces = Math.ceil((toMs - fromMs) / PIECE_MS);
  const pieceMs = (toMs - fromMs) / pieces;
  for (let piece = 1; piece <= pieces; piece++) {
    const timeMs = fromMs + piece * pieceMs;
    changePhase(vehicle, timeMs);
    if (vehicle.phase !== 'parked') drive(vehicle, streets, timeMs, pieceMs / 1_000);
  }
  vehicle.timeMs = toMs;
}

/** Where it is in the plane. */
export function vehicleEastM(vehicle: SimulatedVehicle, streets: Streets): number {
  return isColumn(vehicle.direction) ? (streets.columnsM[vehicle.line] as number) : vehicle.alongM;
}
export function vehicleNorthM(vehicle: SimulatedVehicle, streets: Streets): number {
  return isColumn(vehicle.direction) ? vehicle.alongM : (streets.rowsM[vehicle.line] as number);
}

/** Driving → stopping when the trip is over → parked once it stands → driving when the rest is over. */
function changePhase(vehicle: SimulatedVehicle, timeMs: number): void {
  if (vehicle.phase === 'stopping' && vehicle.speedMps === 0) {
    vehicle.phase = 'parked';
    vehicle.phaseEndsMs = timeMs + between(REST_MS, vehicle);
  } else if (timeMs < vehicle.phaseEndsMs) {
    return;
  } else if (vehicle.phase === 'driving') {
    vehicle.phase = 'stopping';
  } else if (vehicle.phase === 'parked') {
    vehicle.phase = 'driving';
    vehicle.phaseEndsMs = timeMs + between(TRIP_MS, vehicle);
    vehicle.departures++;
  }
}

function between([least, most]: readonly [number, number], random: RandomState): number {
  return least + (most - least) * nextRandom(random);
}

function drive(vehicle: SimulatedVehicle, streets: Streets, timeMs: number, seconds: number): void {
  const crossingsM = isColumn(vehicle.direction) ? streets.rowsM : streets.columnsM;
  const toJunctionM = Math.abs((crossingsM[vehicle.ahead] as number) - vehicle.alongM);
  const before = vehicle.speedMps;
  const wanted = vehicle.phase === 'stopping' ? 0 : wantedMps(vehicle, streets, toJunctionM, timeMs, seconds);
  const fastest = before + ACCELERATION_MPS2 * seconds;
  const slowest = Math.max(0, before - BRAKING_MPS2 * seconds);
  vehicle.speedMps = Math.min(fastest, Math.max(slowest, wanted));
  const movedM = ((before + vehicle.speedMps) / 2) * seconds;
  vehicle.odometerM += movedM;
  if (movedM < toJunctionM) vehicle.alongM += isForward(vehicle.direction) ? movedM : -movedM;
  else crossJunction(vehicle, streets, movedM - toJunctionM);
}

/** The speed for the end of this piece: the driver's for this street, less where a turn or a red light is near. */
function wantedMps(
  vehicle: SimulatedVehicle,
  streets: Streets,
  toJunctionM: number,
  timeMs: number,
  seconds: number,
): number {
  const limits = isColumn(vehicle.direction) ? streets.columnLimitsKmh : streets.rowLimitsKmh;
  let wanted = ((limits[vehicle.line] as number) / 3.6) * vehicle.pace;
  if (vehicle.turnTo !== vehicle.direction) {
    wanted = Math.min(wanted, brakingMps(vehicle.speedMps, TURNING_MPS, toJunctionM, seconds));
  }
  const toLineM = Math.max(0, toJunctionM - STOP_LINE_M);
  const canStop = vehicle.speedMps ** 2 <= 2.2 * BRAKING_MPS2 * toLineM + 1;
  if (canStop && isRed(vehicle, streets, timeMs)) {
    wanted = Math.min(wanted, brakingMps(vehicle.speedMps, 0, toLineM, seconds));
  }
  return wanted;
}

/**
 * The highest speed in `seconds` from now from which steady braking still slows the vehicle down to `endMps` at
 * `distanceM` from here: the root x of x² = endMps² + 2b (distanceM - seconds (now + x) / 2).
 */
function brakingMps(nowMps: number, endMps: number, distanceM: number, seconds: number): number {
  const half = (BRAKING_MPS2 * seconds) / 2;
  const square = half ** 2 + endMps ** 2 + 2 * BRAKING_MPS2 * distanceM - 2 * half * nowMps;
  return square <= 0 ? 0 : Math.max(0, Math.sqrt(square) - half);
}

function isRed(vehicle: SimulatedVehicle, streets: Streets, timeMs: number): boolean {
  const onColumn = isColumn(vehicle.direction);
  const column = onColumn ? vehicle.line : vehicle.ahead;
  const row = onColumn ? vehicle.ahead : vehicle.line;
  if (!isAvenue(streets.columnLimitsKmh[column] as number)) return false;
  if (!isAvenue(streets.rowLimitsKmh[row] as number)) return false;
  const second = (timeMs / 1_000 + column * 7 + row * 13) % LIGHT_CYCLE_S;
  return onColumn ? second >= GREEN_S : second < LIGHT_CYCLE_S / 2 || second >= LIGHT_CYCLE_S / 2 + GREEN_S;
}

/** Leaves the junction ahead as decided on the way to it, `carriedM` metres into the next block. */
function crossJunction(vehicle: SimulatedVehicle, streets: Streets, carriedM: number): void {
  const junction = vehicle.ahead;
  if (isColumn(vehicle.turnTo) !== isColumn(vehicle.direction)) {
    vehicle.ahead = vehicle.line;
    vehicle.line = junction;
  }
  vehicle.direction = vehicle.turnTo;
  const crossingsM = isColumn(vehicle.direction) ? streets.rowsM : streets.columnsM;
  const startM = crossingsM[vehicle.ahead] as number;
  const forward = isForward(vehicle.direction);
  vehicle.alongM = forward ? startM + carriedM : startM - carriedM;
  vehicle.ahead += forward ? 1 : -1;
  vehicle.turnTo = chooseTurn(vehicle, streets);
}

/** Straight on, right or left at the junction ahead: straight four times as likely, an avenue twice; never out of town. */
function chooseTurn(vehicle: SimulatedVehicle, streets: Streets): number {
  const onColumn = isColumn(vehicle.direction);
  const column = onColumn ? vehicle.line : vehicle.ahead;
  const row = onColumn ? vehicle.ahead : vehicle.line;
  let chosen = vehicle.direction;
  let total = 0;
  for (const quarter of [0, 1, 3]) {
    const direction = (vehicle.direction + quarter) % 4;
    const along = isColumn(direction) ? row : column;
    if (isForward(direction) ? along === streets.lines - 1 : along === 0) continue;
    const limitKmh = isColumn(direction) ? streets.columnLimitsKmh[column] : streets.rowLimitsKmh[row];
    const weight = (quarter === 0 ? 4 : 1) * (isAvenue(limitKmh as number) ? 2 : 1);
    total += weight;
    if (nextRandom(vehicle) * total < weight) chosen = direction;
  }
  return chosen;
}

function isColumn(direction: number): boolean {
  return direction % 2 === 0;
}

/** North and east, where the indices rise. */
function isForward(direction: number): boolean {
  return direction < 2;
}
