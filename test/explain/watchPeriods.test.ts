import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { indexAt, type Past, type PastShape, watchPeriodsOf } from '../../src/explain/watchPeriods.ts';

const never: PastShape['compiled'] = () => assert.fail('no shape is compiled to know when it was in force');
const FIRST: PastShape = { compiled: never };
const SECOND: PastShape = { compiled: never };
const [OWNER, MATE, ORGANIZATION] = [1, 2, 3];
const END = Number.POSITIVE_INFINITY;
const START = Number.NEGATIVE_INFINITY;

const past = (values: Partial<Past>): Past => ({
  createdAtMs: 100,
  revisions: [{ sinceMs: 100, worldId: OWNER, dwellSeconds: 60, shape: FIRST }],
  deviceWorlds: [{ value: OWNER, untilMs: END }],
  organizations: new Map(),
  ...values,
});
const told = (values: Partial<Past>) =>
  watchPeriodsOf(past(values)).map(({ sinceMs, state, dwellSeconds, isKnown }) => [
    sinceMs,
    state,
    dwellSeconds,
    isKnown,
  ]);

describe('what points were evaluated against', () => {
  test('is no area before it was made, and each of its forms from its time on', () => {
    const revisions = [
      { sinceMs: 100, worldId: OWNER, dwellSeconds: 60, shape: FIRST },
      { sinceMs: 200, worldId: OWNER, dwellSeconds: 60, shape: SECOND },
      { sinceMs: 300, worldId: OWNER, dwellSeconds: 90, shape: SECOND },
    ];
    const periods = watchPeriodsOf(past({ revisions }));
    assert.deepEqual(
      periods.map(({ sinceMs, shape }) => [sinceMs, shape === FIRST ? 1 : 2]),
      [
        [START, 1],
        [100, 1],
        [200, 2],
        [300, 2],
      ],
    );
    assert.deepEqual(
      [START, 99, 100, 199, 200, 299, 300, END].map((ms) => indexAt(periods, ms)),
      [0, 0, 1, 1, 2, 2, 3, 3],
    );
  });

  test('is not known before the first form that was kept', () => {
    const revisions = [{ sinceMs: 500, worldId: OWNER, dwellSeconds: 60, shape: FIRST }];
    assert.deepEqual(told({ revisions }), [
      [START, 'no_area', 60, true],
      [100, 'watched', 60, false],
      [500, 'watched', 60, true],
    ]);
  });

  test('does not count what changed nothing for the device', () => {
    const deviceWorlds = [
      { value: ORGANIZATION, untilMs: 200 },
      { value: OWNER, untilMs: END },
    ];
    const organizations = new Map([[OWNER, [{ value: ORGANIZATION, untilMs: END }]]]);
    assert.deepEqual(told({ deviceWorlds, organizations }), [
      [START, 'no_area', 60, true],
      [100, 'watched', 60, true],
    ]);
  });

  const state = (areaWorldId: number, deviceWorldId: number, ownerIn: number | null, mateIn: number | null) =>
    watchPeriodsOf(
      past({
        revisions: [{ sinceMs: 100, worldId: areaWorldId, dwellSeconds: 0, shape: FIRST }],
        deviceWorlds: [{ value: deviceWorldId, untilMs: END }],
        organizations: new Map([
          [OWNER, [{ value: ownerIn, untilMs: END }]],
          [MATE, [{ value: mateIn, untilMs: END }]],
        ]),
      }),
    ).at(-1)?.state;
  const rows = [
    ['a private area, its own device', OWNER, OWNER, null, null, 'watched'],
    ['a private area, a shared device', OWNER, ORGANIZATION, ORGANIZATION, null, 'watched'],
    ['the same when the owner has left', OWNER, ORGANIZATION, null, ORGANIZATION, 'not_watched'],
    ['a private area, the private device of a mate', OWNER, MATE, ORGANIZATION, ORGANIZATION, 'not_watched'],
    ['a shared area, a shared device', ORGANIZATION, ORGANIZATION, null, null, 'watched'],
    ['a shared area, the private device of a member', ORGANIZATION, MATE, null, ORGANIZATION, 'watched'],
    ['the same when the member has left', ORGANIZATION, MATE, ORGANIZATION, null, 'not_watched'],
  ] as const;
  for (const [name, area, device, ownerIn, mateIn, expected] of rows) {
    test(`${name}: ${expected}`, () => assert.equal(state(area, device, ownerIn, mateIn), expected));
  }

  test('follows memberships that end and begin', () => {
    const organizations = new Map([
      [
        OWNER,
        [
          { value: null, untilMs: 150 },
          { value: ORGANIZATION, untilMs: 250 },
          { value: null, untilMs: END },
        ],
      ],
    ]);
    assert.deepEqual(told({ deviceWorlds: [{ value: ORGANIZATION, untilMs: END }], organizations }), [
      [START, 'no_area', 60, true],
      [100, 'not_watched', 60, true],
      [150, 'watched', 60, true],
      [250, 'not_watched', 60, true],
    ]);
  });
});
