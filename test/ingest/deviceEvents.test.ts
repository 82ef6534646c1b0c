import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { DeviceEvent } from '../../src/events/fleetEvent.ts';
import { type DeviceState, NO_STATE, stepDevice } from '../../src/ingest/deviceEvents.ts';
import type { Fix } from '../../src/ingest/fix.ts';
import { fixOf } from '../support/ingest/fixOf.ts';
import { runs } from '../support/torture.ts';

const START = Date.UTC(2026, 2, 14, 12);

/** A fix `second` seconds into the trace. */
function fix(second: number, values: Partial<Fix> = {}): Fix {
  return fixOf('352093081234501', START + second * 1_000, {
    altitudeM: 30,
    speedKmh: 0,
    satellites: 9,
    ...values,
  });
}

function replay(trace: readonly Fix[]): { state: DeviceState; events: DeviceEvent[][]; speeds: number[] } {
  let state = NO_STATE;
  const events: DeviceEvent[][] = [];
  const speeds: number[] = [];
  for (const point of trace) {
    const step = stepDevice(state, point);
    state = step.state;
    events.push([...step.events]);
    speeds.push(step.state.speedKmh);
  }
  return { state, events, speeds };
}

/** "second type detail" of every event, the shape in which the tables below are written. */
function story(trace: readonly Fix[]): string[] {
  return replay(trace).events.flatMap((events, n) =>
    events.map((event) => {
      const second = ((trace[n]?.recordedAtMs ?? 0) - START) / 1_000;
      return [second, event.type, detail(event)].filter((part) => part !== '').join(' ');
    }),
  );
}

function detail(event: DeviceEvent): string {
  if ('parkedAtMs' in event) return String((event.parkedAtMs - START) / 1_000);
  if ('alarm' in event) return event.alarm;
  return 'rfid' in event ? event.rfid : '';
}

const slow = { speedKmh: 4.99 };
const fast = { speedKmh: 5 };

describe('events', () => {
  const cases: [name: string, trace: Fix[], expected: string[]][] = [
    ['a first point reports nothing of ignition and parking', [fix(0, { ignition: true })], []],
    [
      'ignition events come on change only',
      [false, false, true, true, false].map((ignition, n) => fix(n, { ignition })),
      ['2 ignition_on', '4 ignition_off'],
    ],
    [
      'an unknown ignition is no change, and is bridged',
      [true, null, null, false, null, false, null, true].map((ignition, n) => fix(n, { ignition })),
      ['3 ignition_off', '7 ignition_on'],
    ],
    ['119 s slow is not parked', [fix(0, slow), fix(60, slow), fix(119, slow)], []],
    [
      '120 s slow is parked since the first slow point',
      [fix(0, slow), fix(120, slow)],
      ['120 parking_start 0'],
    ],
    [
      'a stay is reported once, and its end by the first fast point',
      [
        fix(0, fast),
        fix(10, slow),
        fix(129, slow),
        fix(130, slow),
        fix(131, slow),
        fix(900, slow),
        fix(910, fast),
        fix(920, fast),
      ],
      ['130 parking_start 10', '910 parking_end 10'],
    ],
    [
      'a fast point in between starts the count anew',
      [fix(0, slow), fix(60, fast), fix(61, slow), fix(180, slow)],
      [],
    ],
    [
      'a slow point, silence, and a slow point are a stay',
      [fix(0, slow), fix(36_000, slow)],
      ['36000 parking_start 0'],
    ],
    [
      'each alarm is reported when the previous point did not carry it',
      [['sos'], ['sos', 'tow'], ['tow'], [], ['tow']].map((alarms, n) => fix(n, { alarms })),
      ['0 alarm sos', '1 alarm tow', '4 alarm tow'],
    ],
    [
      'tampering has its own event',
      [
        fix(0, { alarms: ['tampering', 'sos'] }),
        fix(1, { alarms: ['tamper'] }),
        fix(2, { alarms: ['removing'] }),
      ],
      ['0 tamper_alert tampering', '0 alarm sos', '1 tamper_alert tamper', '2 tamper_alert removing'],
    ],
    [
      'a tag is reported when the previous point had another or none',
      ['A', 'A', 'B', null, 'B', null].map((rfid, n) => fix(n, { rfid })),
      ['0 rfid A', '2 rfid B', '4 rfid B'],
    ],
    [
      'one point can report everything',
      [
        fix(0, { ...slow, ignition: false }),
        fix(200, { ...slow, ignition: false }),
        fix(300, { ...fast, ignition: true, alarms: ['sos'], rfid: 'A' }),
      ],
      ['200 parking_start 0', '300 ignition_on', '300 parking_end 0', '300 alarm sos', '300 rfid A'],
    ],
  ];
  for (const [name, trace, expected] of cases) {
    test(name, () => assert.deepEqual(story(trace), expected));
  }

  test('an event has the position of its point', () => {
    const { events } = replay([fix(0, slow), fix(200, { ...slow, lat: 1, lng: 2 })]);
    assert.deepEqual(events[1], [{ type: 'parking_start', position: { lat: 1, lng: 2 }, parkedAtMs: START }]);
  });
});

test('a missing speed is derived, and decides about parking like a reported one', () => {
  const unknown = { speedKmh: null };
  const trace = [fix(0, unknown), fix(60, unknown), fix(120, unknown), fix(180, { ...unknown, lat: 41.91 })];
  const { speeds } = replay(trace);
  assert.deepEqual(speeds.slice(0, 3), [0, 0, 0]);
  assert.ok(Math.abs((speeds[3] ?? 0) - 66.65) < 0.1, `${speeds[3]} km/h for 1110.8 m in a minute`);
  assert.deepEqual(story(trace), ['120 parking_start 0', '180 parking_end 0']);
});

/** The events of a whole trace, each point evaluated by looking back over all of the trace. */
function naiveEvents(trace: readonly Fix[]): string[][] {
  const isSlow = trace.map((point, n) => {
    const previous = trace[n - 1];
    if (point.speedKmh !== null) return point.speedKmh < 5;
    // The traces below stand still or jump by at least 0.1°, which is fast for any gap of up to 10 min.
    return !previous || point.recordedAtMs - previous.recordedAtMs > 600_000 || previous.lat === point.lat;
  });
  const stayBegan = (n: number): number | null => {
    if (!isSlow[n]) return null;
    const first = isSlow.lastIndexOf(false, n) + 1;
    const since = trace[first]?.recordedAtMs ?? 0;
    return (trace[n]?.recordedAtMs ?? 0) - since >= 120_000 ? since : null;
  };
  return trace.map((point, n) => {
    const reported: string[] = [];
    const known = trace
      .slice(0, n)
      .flatMap(({ ignition }) => ignition ?? [])
      .at(-1);
    const before = trace[n - 1];
    if (known === false && point.ignition === true) reported.push('ignition_on');
    if (known === true && point.ignition === false) reported.push('ignition_off');
    const was = n === 0 ? null : stayBegan(n - 1);
    const is = stayBegan(n);
    if (was !== null && is === null) reported.push(`parking_end ${(was - START) / 1_000}`);
    if (was === null && is !== null) reported.push(`parking_start ${(is - START) / 1_000}`);
    for (const alarm of point.alarms) {
      if (before?.alarms.some((name) => name === alarm)) continue;
      reported.push(`${/^(tamper|tampering|removing)$/.test(alarm) ? 'tamper_alert' : 'alarm'} ${alarm}`);
    }
    if (point.rfid && point.rfid !== before?.rfid) reported.push(`rfid ${point.rfid}`);
    return reported;
  });
}

test('step by step, a trace reports what looking back over all of it reports', () => {
  const gap = fc.oneof(fc.integer({ min: 1, max: 60 }), fc.constantFrom(119, 120, 121, 599, 600, 601, 4_000));
  const values = fc.record({
    speedKmh: fc.constantFrom(null, 0, 0, 3, 4.999, 5, 50),
    lat: fc.constantFrom(41.9, 41.9, 41.9, 42),
    ignition: fc.constantFrom(null, true, false),
    alarms: fc.uniqueArray(fc.constantFrom('sos', 'tow', 'tamper', 'tampering', 'removing'), {
      maxLength: 3,
    }),
    rfid: fc.constantFrom(null, 'A', 'B'),
  });
  const trace = fc.array(fc.tuple(gap, values), { maxLength: 40 }).map((points) => {
    let second = 0;
    return points.map(([seconds, changes]) => {
      second += seconds;
      return fix(second, changes);
    });
  });
  const seen = new Set<string>();
  fc.assert(
    fc.property(trace, (points) => {
      const reported = replay(points).events.map((events) =>
        events.map((event) => [event.type, detail(event)].filter((part) => part !== '').join(' ')),
      );
      assert.deepEqual(reported, naiveEvents(points));
      for (const event of reported.flat()) seen.add(event.split(' ')[0] ?? '');
    }),
    { seed: 20_260_314, numRuns: runs(125) },
  );
  assert.equal(seen.size, 7, [...seen].join());
});
