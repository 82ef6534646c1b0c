import assert from 'node:assert/strict';
import { afterEach, describe, test } from 'node:test';
import fc from 'fast-check';
import {
  boundsOfDay,
  dateOf,
  distanceText,
  fieldText,
  isoOfField,
  msOfField,
  speedText,
  timeText,
  units,
  zone,
} from '../../src/console/page/format.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** With offsets of parts of an hour, steps of half an hour, a day that was left out, and midnights that do not exist. */
const ZONES = [
  'UTC',
  'Europe/Berlin',
  'America/St_Johns',
  'Australia/Lord_Howe',
  'Asia/Kathmandu',
  'Pacific/Apia',
  'Africa/Cairo',
  'America/Sao_Paulo',
];

afterEach(() => {
  zone.value = '';
  units.value = 'km';
});

describe('times in the chosen zone', () => {
  test('what a field shows of a minute is read as that minute, or as the other one that the clocks show alike', () => {
    fc.assert(
      fc.property(
        fc.constantFrom(...ZONES),
        fc.integer({ min: Date.UTC(2000, 0), max: Date.UTC(2040, 0) }),
        (name, ms) => {
          zone.value = name;
          const text = fieldText(ms);
          const read = msOfField(text);
          assert.equal(fieldText(read), text);
          const minute = Math.floor(ms / MINUTE_MS) * MINUTE_MS;
          assert.ok(
            minute - read === 0 || (minute - read > 0 && minute - read <= HOUR_MS),
            `${name} ${text}`,
          );
        },
      ),
    );
  });

  test('days begin and end with those of the zone, also where one has 23 hours, 25, or no midnight', () => {
    const lengths: readonly [string, string, string, number][] = [
      ['UTC', '2026-03-29', '2026-03-29T00:00:00.000Z', 24],
      ['Europe/Berlin', '2026-03-29', '2026-03-28T23:00:00.000Z', 23],
      ['Europe/Berlin', '2026-10-25', '2026-10-24T22:00:00.000Z', 25],
      ['America/New_York', '2026-03-08', '2026-03-08T05:00:00.000Z', 23],
      ['America/Sao_Paulo', '2018-11-04', '2018-11-04T03:00:00.000Z', 23],
      ['Asia/Kathmandu', '2026-01-01', '2025-12-31T18:15:00.000Z', 24],
    ];
    for (const [name, date, from, hours] of lengths) {
      zone.value = name;
      const { fromMs, toMs } = boundsOfDay(date);
      assert.deepEqual([new Date(fromMs).toISOString(), (toMs - fromMs) / HOUR_MS], [from, hours], name);
      assert.deepEqual([dateOf(fromMs), dateOf(toMs - 1)], [date, date]);
    }
  });

  test('what is not a time is none', () => {
    for (const text of ['', 'soon', '2026-13-01T00:00', '275760-12-31T00:00'])
      assert.equal(isoOfField(text), null, text);
    assert.equal(timeText(Number.NaN, 'day'), '');
  });

  test('times are written in it', () => {
    zone.value = 'Asia/Kathmandu';
    assert.match(timeText(Date.UTC(2026, 0, 1, 6), 'dayAndTime'), /11.45/);
  });
});

test('ways and speeds are written in the chosen units', () => {
  assert.deepEqual([speedText(36.4), distanceText(1.66)], ['36 km/h', '1.7 km']);
  units.value = 'mi';
  assert.deepEqual([speedText(36.4), distanceText(1.66)], ['23 mph', '1.0 mi']);
});
