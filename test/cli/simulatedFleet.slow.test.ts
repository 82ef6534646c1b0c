import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { createFleet, type SimulatedPoint } from '../../src/cli/simulate/simulatedFleet.ts';
import { createStreets } from '../../src/cli/simulate/streets.ts';
import { distanceM } from '../../src/geo/wgs84.ts';
import { NO_STATE, stepDevice } from '../../src/ingest/deviceEvents.ts';
import { parsePoint } from '../../src/ingest/formats/parsePoint.ts';

const START = Date.UTC(2026, 2, 14, 12);
const ROME = { lat: 41.9, lng: 12.5 };
const SEED = 7;

function imeis(count: number): string[] {
  return Array.from({ length: count }, (_, n) => String(350_000_000_000_000 + n));
}

/** The points of every vehicle from the start on, one each `everyS` seconds. */
function record(count: number, seconds: number, everyS: number, seed = SEED): SimulatedPoint[][] {
  const fleet = createFleet({ imeis: imeis(count), seed, startMs: START, centre: ROME });
  const traces: SimulatedPoint[][] = imeis(count).map(() => []);
  for (let second = 0; second <= seconds; second += everyS) {
    for (let vehicle = 0; vehicle < count; vehicle++) {
      traces[vehicle]?.push(fleet.step(vehicle, START + second * 1_000));
    }
  }
  return traces;
}

/** Every pair of neighbouring points of every trace. */
function pairs(traces: SimulatedPoint[][]): [SimulatedPoint, SimulatedPoint][] {
  return traces.flatMap((trace) =>
    trace.slice(1).map((point, n): [SimulatedPoint, SimulatedPoint] => [trace[n] ?? point, point]),
  );
}

function apartM(a: SimulatedPoint, b: SimulatedPoint): number {
  return distanceM(a.latitude, a.longitude, b.latitude, b.longitude);
}

/** Degrees clockwise from north from one point to another, by the plane of the town. */
function bearing(a: SimulatedPoint, b: SimulatedPoint): number {
  const east = (b.longitude - a.longitude) * Math.cos((a.latitude * Math.PI) / 180);
  return ((Math.atan2(east, b.latitude - a.latitude) * 180) / Math.PI + 360) % 360;
}

const traces = record(40, 1_800, 1);

describe('vehicles, second by second for half an hour,', () => {
  test('move by their speed, of which the odometer is the sum', () => {
    for (const trace of traces) {
      let drivenM = 0;
      for (const [a, b] of pairs([trace])) {
        const stepM = (a.speed_kmh + b.speed_kmh) / 2 / 3.6;
        const movedM = apartM(a, b);
        assert.ok(movedM <= stepM + 0.1, `${movedM} m for ${stepM} m driven`);
        if (a.heading === b.heading)
          assert.ok(movedM >= stepM * 0.997 - 0.1, `${movedM} m for ${stepM} m driven`);
        drivenM += stepM;
        const countedM = (b.odometer_km - (trace[0] ?? a).odometer_km) * 1_000;
        assert.ok(
          Math.abs(countedM - drivenM) < 2 + drivenM * 0.002,
          `${countedM} m for ${drivenM} m driven`,
        );
      }
    }
  });

  test('head where they move, turn by right angles when slow, and change their speed no faster than cars', () => {
    let [compared, turns, fastest] = [0, 0, 0];
    for (const [a, b] of pairs(traces)) {
      assert.ok(Math.abs(b.speed_kmh - a.speed_kmh) / 3.6 <= 2.3, `${a.speed_kmh} to ${b.speed_kmh}`);
      fastest = Math.max(fastest, b.speed_kmh);
      if (a.heading !== b.heading) {
        turns++;
        assert.ok([90, 270].includes(Math.abs(a.heading - b.heading)), `${a.heading} to ${b.heading}`);
        assert.ok(b.speed_kmh < 30 && a.speed_kmh < 30, `${a.speed_kmh} to ${b.speed_kmh}`);
      } else if (apartM(a, b) >= 2) {
        compared++;
        const off = Math.abs(bearing(a, b) - b.heading);
        assert.ok(Math.min(off, 360 - off) < 1.5, `${bearing(a, b)} for ${b.heading}`);
      }
    }
    assert.ok(compared > 10_000 && turns > 500, `${compared} ${turns}`);
    assert.ok(fastest > 45 && fastest < 75, String(fastest));
  });

  test('stay on the streets of the town', () => {
    const streets = createStreets(SEED, ROME);
    const origin = streets.latLng(0, 0);
    const east = streets.latLng(1_000, 0);
    const north = streets.latLng(0, 1_000);
    const [eastLng, eastLat] = [east.lng - origin.lng, east.lat - origin.lat];
    const [northLng, northLat] = [north.lng - origin.lng, north.lat - origin.lat];
    const area = eastLng * northLat - northLng * eastLat;
    for (const { latitude, longitude } of traces.flat()) {
      const [lng, lat] = [longitude - origin.lng, latitude - origin.lat];
      const eastM = (1_000 * (lng * northLat - northLng * lat)) / area;
      const northM = (1_000 * (eastLng * lat - lng * eastLat)) / area;
      const onColumn = streets.columnsM.some((columnM) => Math.abs(columnM - eastM) < 0.1);
      const onRow = streets.rowsM.some((rowM) => Math.abs(rowM - northM) < 0.1);
      assert.ok(onColumn || onRow, `${eastM}, ${northM}`);
    }
  });

  test('stand still with their ignition off, and wait no longer at lights than counts as parked', () => {
    let waits = 0;
    for (const trace of traces) {
      let waitS = 0;
      for (const [before, point] of pairs([trace])) {
        if (!point.ignition) {
          const still = { speed_kmh: 0, latitude: before.latitude, longitude: before.longitude };
          assert.deepEqual({ ...point, ...still, odometer_km: before.odometer_km }, point);
        }
        waitS = point.ignition && point.speed_kmh < 5 ? waitS + 1 : 0;
        assert.ok(waitS < 60, `${waitS} s`);
        if (waitS === 10) waits++;
      }
    }
    assert.ok(waits > 20, `${waits} waits at lights`);
  });
});

test('metres of the town are metres on Earth, from the equator to the polar circle and across 180°', () => {
  for (const centre of [ROME, { lat: 0, lng: 0 }, { lat: -66, lng: 179.99 }, { lat: 60, lng: -179.99 }]) {
    const streets = createStreets(SEED, centre);
    assert.deepEqual(streets.latLng(0, 0), centre);
    for (const [eastM, northM] of [
      [4_000, 0],
      [0, -4_000],
      [3_000, -3_000],
      [-3_000, 3_000],
    ] as const) {
      const { lat, lng } = streets.latLng(eastM, northM);
      const reachedM = distanceM(centre.lat, centre.lng, lat, lng);
      assert.ok(Math.abs(reachedM / Math.hypot(eastM, northM) - 1) < 0.002, `${reachedM} m at ${centre.lat}`);
      assert.ok(Math.abs(lng) <= 180);
    }
  }
});

describe('points', () => {
  test('are accepted as they are, with nothing ignored', () => {
    for (const point of traces.flatMap((trace) => trace.filter((_, n) => n % 50 === 0))) {
      const parsed = parsePoint(point, START + 1_800_000, START);
      assert.ok(parsed.ok && parsed.value.ignored.length === 0, JSON.stringify(point));
    }
  });

  test('are the same for the same seed, whatever order the vehicles are asked in, and others for another', () => {
    const fleet = createFleet({ imeis: imeis(40), seed: SEED, startMs: START, centre: ROME });
    const others = record(40, 0, 1, SEED + 1);
    for (let vehicle = 39; vehicle >= 0; vehicle--) {
      for (let second = 0; second <= 300; second++)
        assert.deepEqual(fleet.step(vehicle, START + second * 1_000), traces[vehicle]?.[second]);
      assert.notDeepEqual(others[vehicle]?.[0], traces[vehicle]?.[0]);
    }
    assert.throws(() => fleet.step(40, START), RangeError);
  });

  test('after a day of silence are near the last one, and go on from there', () => {
    const fleet = createFleet({ imeis: imeis(20), seed: SEED, startMs: START, centre: ROME });
    for (let vehicle = 0; vehicle < 20; vehicle++) {
      const before = fleet.step(vehicle, START);
      const after = fleet.step(vehicle, START + 86_400_000);
      assert.ok(apartM(before, after) < 7_000);
      assert.ok(apartM(after, fleet.step(vehicle, START + 86_401_000)) < 25);
    }
  });
});

describe('a demo of four minutes shows', () => {
  const eventsOf = (fleetSize: number): Set<string> => {
    const seen = new Set<string>();
    for (const trace of record(fleetSize, 240, 5)) {
      let track = NO_STATE;
      for (const point of trace) {
        const parsed = parsePoint(point, START + 600_000, START);
        assert.ok(parsed.ok);
        const step = stepDevice(track, parsed.value.fix);
        track = step.state;
        for (const event of step.events) seen.add(event.type);
      }
    }
    return seen;
  };

  test('a single vehicle parking', () => {
    for (const seed of [1, 2, 3]) {
      const points = record(1, 200, 5, seed)[0] ?? [];
      const still = points.filter(({ ignition }) => !ignition);
      assert.ok(still.length * 5 > 120, `parked for ${still.length * 5} s (seed ${seed})`);
    }
  });

  test('a fleet of 25 with ignition and parking, on and off, and one of 200 with tags and alarms too', () => {
    const few = eventsOf(25);
    for (const type of ['ignition_on', 'ignition_off', 'parking_start', 'parking_end'])
      assert.ok(few.has(type), `${type} in ${[...few].join()}`);
    const many = eventsOf(200);
    assert.ok(many.has('rfid') && (many.has('alarm') || many.has('tamper_alert')), [...many].join());
  });

  test('most vehicles moving from their first point on', () => {
    const moving = record(100, 0, 1).filter(([point]) => (point?.speed_kmh ?? 0) >= 5);
    assert.ok(moving.length >= 55, `${moving.length} of 100`);
  });
});
