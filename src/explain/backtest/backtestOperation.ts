import { AREA_ERRORS } from '../../areas/areaErrors.ts';
import { EXAMPLE_AREA_BODIES } from '../../areas/areaExamples.ts';
import { answered, dataBody } from '../../http/openapi/body.ts';
import { envelope } from '../../http/openapi/commonSchemas.ts';
import type { Operation } from '../../http/openapi/operation.ts';
import { list, ref } from '../../http/openapi/schema.ts';
import { DAY_MS, formatDuration } from '../../lib/durations.ts';
import { dwellView, replayedEventView } from './backtestJson.ts';
import { NOT_RECORDED } from './backtestNotes.ts';
import { BACKTEST_META } from './backtestSchemas.ts';
import { BACKTEST_LIMIT_MS, BACKTESTS_PER_ACCOUNT } from './backtests.ts';
import { DwellTally, LISTED_EVENTS_MAX } from './dwellTally.ts';
import {
  BACKTEST_ERRORS,
  BACKTEST_LIMITS,
  tooManyPoints,
  tooMuchWork,
  windowTooLong,
} from './readBacktest.ts';
import { BACKTEST_SIZES } from './surveyDevices.ts';

const { circle } = EXAMPLE_AREA_BODIES;
const IMEI = '356307042441013';
const WINDOW = { from: '2026-01-01T00:00:00.000Z', to: '2026-01-31T23:59:59.999Z' };
const ENTERED_MS = Date.parse('2026-01-14T07:31:20Z');
const META = { window: WINDOW, points: 44_640, devices: 12, notes: [NOT_RECORDED] };

/** One visit of ten minutes. */
function exampleData(areaId: number | null, recorded: number | null): unknown {
  const tally = new DwellTally(circle.dwell_seconds);
  const visit = [
    { imei: IMEI, direction: 'entry', lat: 41.9027, lng: 12.4963, occurredAtMs: ENTERED_MS },
    { imei: IMEI, direction: 'exit', lat: 41.9061, lng: 12.4911, occurredAtMs: ENTERED_MS + 480_000 },
  ] as const;
  for (const event of visit) tally.add(event);
  tally.same = recorded ?? 0;
  tally.devices = 1;
  tally.insideMs = 600_000;
  const events = tally.listed.map((event) => replayedEventView(event, areaId));
  return [{ ...dwellView(tally, recorded), events }];
}

export const BACKTEST_AREA: Operation = {
  id: 'backtestArea',
  tag: 'Areas',
  summary: 'Try an area, or another minimum stay, on stored points',
  description: `Replays the stored points of a window by the rule that decides on new points, and lists which entries and exits an area would have had: a draft (\`area\`, validated as POST /areas does), or an area that exists (\`area_id\`), whose recorded events are then compared with those of the replay. Nothing is stored or sent.

A device that was inside before the window is known to be: its exit is listed, and no entry. \`events\` are the earliest ${LISTED_EVENTS_MAX}; all are counted. Devices are those that the key sees now. An unknown device in \`devices\` has no points. \`meta.notes\` say what cannot be known.

A window of at most ${BACKTEST_LIMITS.windowDays} days and ${BACKTEST_SIZES.points} points, those included that show who was inside before. It takes at most ${formatDuration(BACKTEST_SIZES.workMs)} of processor time and ${formatDuration(BACKTEST_LIMIT_MS)} in all, and ends when the caller hangs up. An account has ${BACKTESTS_PER_ACCOUNT} at a time on each pod; a further one there is rejected with \`429\`.`,
  body: {
    schema: ref('BacktestInput'),
    fieldError: ref('BacktestFieldError'),
    examples: {
      draft: { area: circle, ...WINDOW, dwell_seconds: [0, 120, 600] },
      'an area that exists': { area_id: 42, devices: [IMEI], ...WINDOW },
    },
    errorExamples: {
      'every invalid field at once': [AREA_ERRORS.circleRadiusOutOfRange, BACKTEST_ERRORS.fromRequired],
      'no area': [BACKTEST_ERRORS.areaRequired],
      'too long a window': [windowTooLong(14 * DAY_MS)],
      'too many points': [tooManyPoints(5_012_448, 212, BACKTEST_SIZES.points)],
      'too much work': [tooMuchWork(BACKTEST_SIZES.workMs)],
      'not a JSON object': [AREA_ERRORS.bodyInvalid],
    },
  },
  answers: [
    answered(
      200,
      'One item for each minimum stay, in the order sent.',
      envelope(list(ref('BacktestResult')), BACKTEST_META),
      {
        draft: dataBody(exampleData(null, null), META),
        'an area that exists': dataBody(exampleData(42, 2), META),
      },
    ),
  ],
  errors: ['NOT_FOUND'],
};
