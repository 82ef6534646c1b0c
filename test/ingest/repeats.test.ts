import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { DeviceEvent } from '../../src/events/fleetEvent.ts';
import {
  type DeviceState,
  decodeRepeats,
  encodeRepeats,
  evaluateBatch,
  NO_STATE,
  REMEMBERED_MAX,
  stepDevice,
  stepRepeat,
} from '../../src/ingest/deviceEvents.ts';
import type { Fix } from '../../src/ingest/fix.ts';
import { InvariantError } from '../../src/lib/errors.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';
import { fixOf } from '../support/ingest/fixOf.ts';
import { runs } from '../support/torture.ts';

const START = Date.UTC(2026, 2, 14, 12);
const SEED = { seed: 20_260_314 };

/** A message about the fix `second` seconds into the story, sent at `sent` seconds where that is known. */
function message(second: number, values: Partial<Fix> = {}, sent: number | null = null): Fix {
  const sentAtMs = sent === null || sent <= second ? null : START + sent * 1_000;
  const atRest = { altitudeM: 30, speedKmh: 0, satellites: 9 };
  return fixOf('352093081234501', START + second * 1_000, { ...atRest, sentAtMs, ...values });
}

/** What an event says, in a word. */
const word = (event: DeviceEvent): string =>
  'alarm' in event ? event.alarm : 'rfid' in event ? event.rfid : event.type;

/** What each message reports, one after the other, from the beginning or from a state. */
function reported(
  messages: readonly Fix[],
  before: DeviceState = NO_STATE,
): { words: string[][]; state: DeviceState } {
  let state = before;
  const words = messages.map((one) => {
    const step = one.recordedAtMs === state.recordedAtMs ? stepRepeat(state, one) : stepDevice(state, one);
    state = step.state;
    return step.events.map(word);
  });
  return { words, state };
}

const on = { ignition: true };
const off = { ignition: false };
const sos = { alarms: ['sos'] };

describe('a repeat of the newest point reports', () => {
  const stories: [name: string, messages: Fix[], words: string[][]][] = [
    ['an alarm that the point did not carry', [message(0), message(0, sos)], [[], ['sos']]],
    [
      'it once, however often it comes',
      [message(0), message(0, sos), message(0, sos, 60)],
      [[], ['sos'], []],
    ],
    ['no alarm that the point carried', [message(0, sos), message(0, sos, 60)], [['sos'], []]],
    [
      'each alarm beside others, in whatever order they come',
      [
        message(0),
        message(0, { alarms: ['b'] }, 60),
        message(0, { alarms: ['a', 'b'] }, 30),
        message(0, sos),
      ],
      [[], ['b'], ['a'], ['sos']],
    ],
    [
      'nothing without an alarm, and the alarm stays reported',
      [message(0, sos), message(0, {}, 60), message(0, sos, 120)],
      [['sos'], [], []],
    ],
    [
      'an alarm that the next point does not report again, but the one after a point without it',
      [message(0), message(0, sos), message(10, sos), message(20), message(30, sos)],
      [[], ['sos'], [], [], ['sos']],
    ],
    ['tampering as such', [message(0), message(0, { alarms: ['tampering'] })], [[], ['tampering']]],
    ['an ignition that changes', [message(0, on), message(0, off)], [[], ['ignition_off']]],
    [
      'an ignition from an earlier point',
      [message(0, on), message(9), message(9, off)],
      [[], [], ['ignition_off']],
    ],
    ['no first ignition', [message(0), message(0, on), message(9, off)], [[], [], ['ignition_off']]],
    [
      'nothing when the point comes again after it',
      [message(0, on), message(0, off), message(0, on), message(0, off)],
      [[], ['ignition_off'], [], []],
    ],
    [
      'every change of ignition that was sent later than the one before',
      [message(0, on), message(0, off, 60), message(0, on, 120), message(0, off, 180)],
      [[], ['ignition_off'], ['ignition_on'], ['ignition_off']],
    ],
    [
      'no ignition that was sent before one that is known',
      [message(0, on), message(0, on, 120), message(0, off, 60), message(0, off, 120)],
      [[], [], [], []],
    ],
    ['a tag', [message(0), message(0, { rfid: 'a' }), message(0, { rfid: 'a' })], [[], ['a'], []]],
    [
      'each tag once, and again when it was sent later',
      [
        message(0, { rfid: 'a' }),
        message(0, { rfid: 'b' }),
        message(0, { rfid: 'a' }),
        message(0, { rfid: 'a' }, 60),
      ],
      [['a'], ['b'], [], ['a']],
    ],
    [
      'a tag that the next point does not report again',
      [message(0), message(0, { rfid: 'a' }), message(10, { rfid: 'a' })],
      [[], ['a'], []],
    ],
  ];
  for (const [name, messages, words] of stories) {
    test(name, () => assert.deepEqual(reported(messages).words, words));
  }

  test('no more alarms and tags than are remembered', () => {
    const many = (values: (n: number) => Partial<Fix>) =>
      Array.from({ length: REMEMBERED_MAX + 50 }, (_, n) => message(0, values(n)));
    const alarms = [message(0), ...many((n) => ({ alarms: [`alarm ${n}`] }))];
    assert.equal(reported(alarms).words.flat().length, REMEMBERED_MAX);
    const tags = [message(0), ...many((n) => ({ rfid: `tag ${n}` }))];
    const first = reported(tags);
    assert.equal(first.words.flat().length, REMEMBERED_MAX);
    assert.deepEqual(reported([...tags, ...tags], first.state).words.flat(), []);
    const sentLater = reported([message(0, { rfid: 'new' }, 60)], first.state);
    assert.deepEqual(sentLater.words, [['new']]);
  });
});

describe('a repeat moves nothing', () => {
  test('neither place nor status, nor how long the device has stood', () => {
    const before = reported([message(0, { speedKmh: 50 }), message(10), message(200, on)]).state;
    const other = { lat: -1, lng: -1, altitudeM: 9, speedKmh: 99, heading: 9, satellites: 1, odometerKm: 5 };
    const { state, events } = stepRepeat(before, message(200, { ...off, ...sos, rfid: 'a', ...other }));
    assert.deepEqual({ ...state, ignition: true, alarms: [], rfid: null, repeats: null }, before);
    assert.equal(events.length, 3);
    for (const event of events) assert.deepEqual(event.position, { lat: 41.9, lng: 12.5 });
  });

  test('and what adds nothing is the very same state', () => {
    const { state } = reported([message(0, { ...on, ...sos, rfid: 'a' })]);
    assert.equal(stepRepeat(state, message(0)).state, state);
    assert.equal(stepRepeat(state, message(0, { ...on, ...sos, rfid: 'a' })).state, state);
    assert.equal(stepRepeat(state, message(0, sos, 60)).state, state);
  });

  test('and another point is none', () => {
    const { state } = reported([message(10)]);
    for (const second of [9, 11]) assert.throws(() => stepRepeat(state, message(second)), InvariantError);
  });
});

test('it is reported when it was sent, or at the time of the point where that is unknown or impossible', () => {
  const { state } = reported([message(0)]);
  const at = (sentAtMs: number | null): number[] => {
    const points = [{ deviceId: 1, fix: { ...message(0, sos), sentAtMs } }];
    return inOneGo(evaluateBatch(points, new Map([[1, { state }]]), START)).events.map(
      ({ occurredAtMs }) => occurredAtMs - START,
    );
  };
  assert.deepEqual(at(null), [0]);
  assert.deepEqual(at(START + 60_000), [60_000]);
  assert.deepEqual(at(START + 600_000), [600_000]);
  assert.deepEqual(at(START + 600_001), [0]);
});

test('what is stored is read again, unless the device has moved on without it', () => {
  const { state } = reported([message(0, on), message(0, { ...off, rfid: 'a,"b"' }), message(0, on, 60)]);
  assert.deepEqual(decodeRepeats(encodeRepeats(state.repeats)), state.repeats);
  assert.equal(encodeRepeats(null), null);
  assert.equal(decodeRepeats(null), null);
});

/** The rule of the guide, word by word: it keeps every message about the newest point, and no state but their list. */
class NaiveDevice {
  #ignitionBefore: boolean | null = null;
  #rfidBefore: string | null = null;
  #alarmsBefore: readonly string[] = [];
  /** The newest point, then its repeats as they came; `news`: the message reported its ignition, its tag. */
  #said: { message: Fix; ignitionIsNews: boolean; rfidIsNews: boolean }[] = [];

  take(one: Fix): string[] {
    const newestMs = this.#said[0]?.message.recordedAtMs ?? Number.NEGATIVE_INFINITY;
    if (one.recordedAtMs < newestMs) return [];
    if (one.recordedAtMs > newestMs) {
      this.#alarmsBefore = this.#alarms();
      this.#rfidBefore = this.#rfid();
      this.#ignitionBefore = this.#ignition();
      this.#said = [];
      const words = this.#words(one, this.#alarmsBefore, one.ignition, one.rfid);
      this.#said = [{ message: one, ignitionIsNews: true, rfidIsNews: true }];
      return words;
    }
    const ignitionIsNews =
      one.ignition !== null && this.#isNews(one, (said) => said.ignition, this.#ignitionBefore);
    const rfidIsNews = one.rfid !== null && this.#isNews(one, (said) => said.rfid, null);
    const words = this.#words(
      one,
      this.#alarms(),
      ignitionIsNews ? one.ignition : null,
      rfidIsNews ? one.rfid : null,
    );
    this.#said.push({ message: one, ignitionIsNews, rfidIsNews });
    return words;
  }

  #isNews<T>(one: Fix, pick: (said: Fix) => T, inherited: T | null): boolean {
    const says = ({ ignition, rfid }: Fix): boolean => ignition !== null || rfid !== null;
    const [point] = this.#said;
    if (one.sentAtMs !== null) {
      const sentMs = one.sentAtMs;
      return this.#said.every(
        ({ message: said }) =>
          !(said === point?.message || says(said)) || (said.sentAtMs ?? said.recordedAtMs) < sentMs,
      );
    }
    // A point that was sent later than its fix says for itself alone; any other stands for what was known before it too.
    const pointValue = point === undefined ? null : pick(point.message);
    const first = pointValue ?? (point?.message.sentAtMs === null ? inherited : null);
    if (first === pick(one)) return false;
    return this.#said
      .slice(1)
      .every(({ message: said }) => said.sentAtMs !== null || pick(said) !== pick(one));
  }

  #words(one: Fix, alarms: readonly string[], ignition: boolean | null, rfid: string | null): string[] {
    const known = this.#said.length === 0 ? this.#ignitionBefore : this.#ignition();
    const tag = this.#said.length === 0 ? this.#rfidBefore : this.#rfid();
    return [
      ...(ignition !== null && known !== null && ignition !== known
        ? [ignition ? 'ignition_on' : 'ignition_off']
        : []),
      ...one.alarms.filter((alarm) => !alarms.includes(alarm)),
      ...(rfid !== null && rfid !== tag ? [rfid] : []),
    ];
  }

  #alarms(): readonly string[] {
    return this.#said.flatMap(({ message: said }) => said.alarms);
  }

  #ignition(): boolean | null {
    const news = this.#said.findLast(
      ({ message: said, ignitionIsNews }) => ignitionIsNews && said.ignition !== null,
    );
    return news?.message.ignition ?? this.#ignitionBefore;
  }

  #rfid(): string | null {
    const news = this.#said.findLast(({ message: said, rfidIsNews }) => rfidIsNews && said.rfid !== null);
    return news?.message.rfid ?? null;
  }
}

describe('any messages, in any order', () => {
  const drawnMessage = fc
    .record({
      second: fc.integer({ min: 0, max: 3 }),
      sent: fc.option(fc.integer({ min: 0, max: 9 })),
      ignition: fc.constantFrom(null, null, true, false),
      alarms: fc.subarray(['sos', 'tampering', 'lowBattery']),
      rfid: fc.constantFrom(null, null, 'a', 'b'),
    })
    .map(({ second, sent, ...values }) => message(second, values, sent));
  const drawn = fc.array(drawnMessage, { maxLength: 25, size: 'max' });
  const settings = { ...SEED, numRuns: runs(400) };

  /** One device under the engine, as the flow drives it; its state goes through what is stored. */
  class Device {
    #state: DeviceState = NO_STATE;

    take(batch: readonly Fix[]): string[] {
      const points = batch.map((fix) => ({ deviceId: 1, fix }));
      const before = new Map([[1, { state: this.#state }]]);
      const { moved, amended, events } = inOneGo(evaluateBatch(points, before, START + 1e9));
      const state = moved.get(1) ?? amended.get(1) ?? this.#state;
      this.#state = { ...state, repeats: decodeRepeats(encodeRepeats(state.repeats)) };
      return events.map(({ event }) => word(event)).filter((text) => !text.startsWith('parking'));
    }

    get state(): DeviceState {
      return this.#state;
    }
  }

  test('report what a naive reading of the rule reports', () => {
    fc.assert(
      fc.property(drawn, (messages) => {
        const device = new Device();
        const naive = new NaiveDevice();
        for (const one of messages) assert.deepEqual(device.take([one]), naive.take(one));
      }),
      settings,
    );
  });

  test('change nothing when they are sent again, alone, together, or in another order', () => {
    fc.assert(
      fc.property(fc.array(drawn, { maxLength: 4 }), fc.nat(), (batches, turn) => {
        const device = new Device();
        const sent: Fix[] = [];
        for (const batch of batches) {
          device.take(batch);
          sent.push(...batch);
          const { state } = device;
          const again = sent.map((_, n) => sent[(n + turn) % sent.length] as Fix);
          assert.deepEqual(device.take(again), []);
          for (const one of again.toReversed()) assert.deepEqual(device.take([one]), []);
          assert.deepEqual(device.state, state);
        }
      }),
      settings,
    );
  });
});
