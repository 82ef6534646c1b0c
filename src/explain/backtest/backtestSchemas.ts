import { AREA_ERRORS, AREA_LIMITS } from '../../areas/areaFields.ts';
import { IMEI } from '../../devices/imei.ts';
import { AREA_EVENT } from '../../events/events.routes.ts';
import {
  choice,
  ID,
  integer,
  list,
  nullable,
  number,
  patternOf,
  ref,
  type Schema,
  shapeOf,
  text,
  time,
} from '../../http/openapi/schema.ts';
import type { FieldError } from '../../lib/fieldError.ts';
import type { dwellView, replayedEventView } from './backtestJson.ts';
import { BACKTEST_NOTE_CODES, type BacktestNote } from './backtestNotes.ts';
import { LISTED_EVENTS_MAX } from './dwellTally.ts';
import { BACKTEST_ERRORS, BACKTEST_LIMITS } from './readBacktest.ts';

const DWELL = integer('A minimum stay.', { minimum: 0, maximum: AREA_LIMITS.maxDwellSeconds });
const COUNT = (description: string) => integer(description, { minimum: 0 });

type Item = ReturnType<typeof dwellView>;

const FAULTS: readonly FieldError[] = [...Object.values(AREA_ERRORS), ...Object.values(BACKTEST_ERRORS)];
const FAULT_FIELDS = [...new Set(FAULTS.flatMap(({ field }) => (field === null ? [] : [field])))];

export const BACKTEST_SCHEMAS = {
  BacktestInput: {
    type: 'object',
    description: 'Either `area` or `area_id`.',
    required: ['from', 'to'],
    properties: {
      area: { ...ref('AreaInput') },
      area_id: nullable(ID),
      devices: nullable(
        list(text('An IMEI.', { pattern: patternOf(IMEI) }), {
          minItems: 1,
          maxItems: BACKTEST_LIMITS.devices,
          description: 'Only these devices; without it all that the key sees.',
        }),
      ),
      from: text('A time in ISO 8601, included.'),
      to: text('A time in ISO 8601, included.'),
      dwell_seconds: {
        oneOf: [DWELL, list(DWELL, { minItems: 1, maxItems: BACKTEST_LIMITS.dwellValues })],
        description: "Minimum stays to be tried; without it the area's own.",
      },
    },
  },
  BacktestResult: shapeOf<Item & { events: unknown }>(
    {
      dwell_seconds: DWELL,
      entries: COUNT('In the window.'),
      exits: COUNT('In the window.'),
      devices: COUNT('That were inside for the minimum stay.'),
      inside_seconds: number(
        'Of stays that reached the minimum, within the window: from the first point inside to the first outside, or to the last point.',
        { minimum: 0 },
      ),
      events: list(ref('BacktestEvent'), {
        description: `By time, then by device; the earliest ${LISTED_EVENTS_MAX}.`,
      }),
      against: shapeOf<Required<Item>['against']>(
        {
          same: COUNT('Events of the replay that are recorded.'),
          new: COUNT('Events of the replay that are not recorded.'),
          gone: COUNT('Recorded events of the same devices that the replay does not have.'),
        },
        { description: 'Only with `area_id`.' },
      ),
    },
    { optional: ['against'] },
  ),
  BacktestEvent: shapeOf<ReturnType<typeof replayedEventView>>(
    {
      area_id: { ...nullable(ID), description: 'null for a draft.' },
      device: text('Its IMEI.'),
      event: choice(AREA_EVENT.values),
      position: ref('LatLng'),
      timestamp: time('The GPS time of the point that produced it.'),
    },
    { description: 'As the events of an area, without an id: it did not happen.' },
  ),
  BacktestNote: shapeOf<BacktestNote>(
    { code: choice(BACKTEST_NOTE_CODES), message: text(), at: time('The time that it is about.') },
    { optional: ['at'] },
  ),
  BacktestFieldError: shapeOf<FieldError>(
    {
      field: nullable(choice(FAULT_FIELDS, 'null: the body as a whole.')),
      code: choice([...new Set(FAULTS.map(({ code }) => code))]),
      message: text(),
    },
    { description: 'One invalid field of the body, or of the area in it.' },
  ),
} as const satisfies Readonly<Record<string, Schema>>;

export const BACKTEST_META = shapeOf<
  Readonly<Record<'window' | 'points' | 'devices' | 'notes' | 'warnings', unknown>>
>(
  {
    window: shapeOf<{ from: string; to: string }>(
      { from: time(), to: time() },
      { description: 'What was replayed.' },
    ),
    points: COUNT('In the window.'),
    devices: COUNT('That have points.'),
    notes: list(ref('BacktestNote'), { description: 'What cannot be known.' }),
    warnings: list(ref('AreaWarning'), { minItems: 1, description: 'Of the draft, when there are any.' }),
  },
  { optional: ['warnings'] },
);
