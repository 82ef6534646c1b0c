import { AREA_ERRORS, AREA_LIMITS } from '../../areas/areaFields.ts';
import { IMEI } from '../../devices/device.ts';
import { AREA_EVENT } from '../../events/events.routes.ts';
import {
  choice,
  ID,
  integer,
  list,
  nullable,
  number,
  ref,
  type Schema,
  shapeOf,
  text,
  time,
} from '../../http/openapi/schema.ts';
import type { FieldError } from '../../lib/result.ts';
import { formatIso } from '../../lib/time.ts';
import type { Steps } from '../../lib/workTurns.ts';
import { type DwellTally, LISTED_EVENTS_MAX, type ReplayedEvent } from './areaReplay.ts';
import type { BacktestResult } from './backtests.ts';
import { BACKTEST_ERRORS, BACKTEST_LIMITS } from './readBacktest.ts';

/** Events between two pauses: some tenths of a millisecond. */
const EVENTS_PER_STEP = 100;

/** Wire form of what was found for one minimum stay, without its events. */
export function dwellView(tally: DwellTally, recorded: number | null) {
  const { dwellSeconds, entries, exits, devices, insideMs, same } = tally;
  return {
    dwell_seconds: dwellSeconds,
    entries,
    exits,
    devices,
    inside_seconds: insideMs / 1_000,
    ...(recorded === null ? {} : { against: { same, new: entries + exits - same, gone: recorded - same } }),
  };
}

/** An event in the form of those of an area, without an id: it did not happen. */
export function replayedEventView(event: ReplayedEvent, areaId: number | null) {
  const { imei: device, direction, lat, lng, occurredAtMs } = event;
  return {
    area_id: areaId,
    device,
    event: direction,
    position: { lat, lng },
    timestamp: formatIso(occurredAtMs),
  };
}

/** `data` as JSON text: an item for each of `dwellSeconds`, in this order. */
export function* backtestJson(
  { tallies, recorded }: Pick<BacktestResult, 'tallies' | 'recorded'>,
  dwellSeconds: readonly number[],
  areaId: number | null,
): Steps<string> {
  const items = new Map<number, string>();
  for (const tally of tallies) {
    const events: string[] = [];
    for (const event of tally.listed) {
      events.push(JSON.stringify(replayedEventView(event, areaId)));
      if (events.length % EVENTS_PER_STEP === 0) yield;
    }
    const counts = JSON.stringify(dwellView(tally, recorded)).slice(0, -1);
    items.set(tally.dwellSeconds, `${counts},"events":[${events.join(',')}]}`);
    yield;
  }
  return `[${dwellSeconds.map((each) => items.get(each)).join(',')}]`;
}

const BACKTEST_NOTE_CODES = [
  'history_trimmed',
  'not_recorded',
  'area_did_not_exist',
  'area_changed',
] as const;

/** A remark on the result of a backtest. */
export interface BacktestNote {
  readonly code: (typeof BACKTEST_NOTE_CODES)[number];
  readonly message: string;
  /** The time that it is about. */
  readonly at?: string;
}

export const NOT_RECORDED: BacktestNote = {
  code: 'not_recorded',
  message:
    'it is not stored of all points whether they came late; those count here, while the engine may have left them out',
};

export const AREA_CHANGED: BacktestNote = {
  code: 'area_changed',
  message:
    'the shape, the minimum stay or the owner of the area was changed since it was made; the replay uses its present form throughout',
};

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
        list(text('An IMEI.', { pattern: IMEI.source }), {
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
