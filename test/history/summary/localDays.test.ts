import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { LocalDays } from '../../../src/history/summary/localDays.ts';
import { runs } from '../../support/torture.ts';

/** An instant, and the day that it lies in. */
const DAYS: readonly [zone: string, at: string, from: string, to: string][] = [
  ['UTC', '2026-03-29T12:00Z', '2026-03-29T00:00Z', '2026-03-30T00:00Z'],
  // Both changes of the clock, at the first and last instant of the day and beside them.
  ['Europe/Rome', '2026-03-28T22:59:59.999Z', '2026-03-27T23:00Z', '2026-03-28T23:00Z'],
  ['Europe/Rome', '2026-03-28T23:00Z', '2026-03-28T23:00Z', '2026-03-29T22:00Z'],
  ['Europe/Rome', '2026-03-29T21:59:59.999Z', '2026-03-28T23:00Z', '2026-03-29T22:00Z'],
  ['Europe/Rome', '2026-03-29T22:00Z', '2026-03-29T22:00Z', '2026-03-30T22:00Z'],
  ['Europe/Rome', '2026-10-24T22:00Z', '2026-10-24T22:00Z', '2026-10-25T23:00Z'],
  ['Europe/Rome', '2026-10-25T22:59:59.999Z', '2026-10-24T22:00Z', '2026-10-25T23:00Z'],
  ['Europe/Rome', '2026-10-25T23:00Z', '2026-10-25T23:00Z', '2026-10-26T23:00Z'],
  // Offsets that are no whole hours, and a change of half an hour.
  ['Asia/Kathmandu', '2026-04-24T12:00Z', '2026-04-23T18:15Z', '2026-04-24T18:15Z'],
  ['Asia/Kolkata', '2026-04-24T18:30Z', '2026-04-24T18:30Z', '2026-04-25T18:30Z'],
  ['Australia/Lord_Howe', '2026-04-05T12:00Z', '2026-04-04T13:00Z', '2026-04-05T13:30Z'],
  // Days that have no midnight: they begin at one o'clock.
  ['America/Sao_Paulo', '2018-11-04T12:00Z', '2018-11-04T03:00Z', '2018-11-05T02:00Z'],
  ['America/Sao_Paulo', '2018-11-04T02:59:59.999Z', '2018-11-03T03:00Z', '2018-11-04T03:00Z'],
  ['Africa/Cairo', '2026-04-24T12:00Z', '2026-04-23T22:00Z', '2026-04-24T21:00Z'],
  // Days whose last hour comes twice.
  ['America/Sao_Paulo', '2019-02-17T02:30Z', '2019-02-16T02:00Z', '2019-02-17T03:00Z'],
  ['Africa/Cairo', '2026-10-29T20:30Z', '2026-10-28T21:00Z', '2026-10-29T22:00Z'],
  // A date that was left out: 30 December.
  ['Pacific/Apia', '2011-12-30T09:59:59.999Z', '2011-12-29T10:00Z', '2011-12-30T10:00Z'],
  ['Pacific/Apia', '2011-12-30T10:00Z', '2011-12-30T10:00Z', '2011-12-31T10:00Z'],
];

/** As YYYY-MM-DD. */
function dateIn(timeZone: string, ms: number): string {
  return new Intl.DateTimeFormat('en-CA', { timeZone, dateStyle: 'short' }).format(ms);
}

describe('the days of a zone', () => {
  for (const [zone, at, from, to] of DAYS) {
    test(`in ${zone}, ${at} lies between ${from} and ${to}`, () => {
      const day = LocalDays.of(zone)?.dayOf(Date.parse(at));
      const date = dateIn(zone, Date.parse(at));
      assert.deepEqual(day, { fromMs: Date.parse(from), toMs: Date.parse(to), date });
    });
  }

  test('are the same whatever was asked before, over more days than are kept', () => {
    const zone = 'Europe/Rome';
    const asked = LocalDays.of(zone) as LocalDays;
    for (let n = 0; n < 200; n++) {
      const ms = Date.UTC(2026, 2, 1 + ((n * 37) % 100), n % 24);
      const alone = LocalDays.of(zone) as LocalDays;
      assert.deepEqual(asked.dayOf(ms), alone.dayOf(ms));
      assert.equal(asked.dayOf(ms).date, dateIn(zone, ms));
    }
  });

  test('follow each other, and each has one date only', () => {
    const zones = ['UTC', 'Europe/Rome', 'America/New_York', 'Australia/Lord_Howe', 'Africa/Cairo'];
    const anyMs = fc.integer({ min: Date.UTC(2016, 0), max: Date.UTC(2036, 0) });
    fc.assert(
      fc.property(fc.constantFrom(...zones), anyMs, (zone, ms) => {
        const days = LocalDays.of(zone) as LocalDays;
        const { fromMs, toMs } = days.dayOf(ms);
        assert.ok(fromMs <= ms && ms < toMs);
        assert.equal(days.dayOf(toMs).fromMs, toMs);
        const date = new Intl.DateTimeFormat('en', { timeZone: zone, dateStyle: 'short' });
        const dates = [fromMs - 1, fromMs, ms, toMs - 1, toMs].map((at) => date.format(at));
        assert.deepEqual(new Set(dates).size, 3);
        assert.equal(new Set(dates.slice(1, 4)).size, 1);
      }),
      { numRuns: runs(200) },
    );
  });

  test('are only those of a zone that has a name', () => {
    for (const name of ['europe/rome', 'UTC', 'Etc/GMT+5', 'America/Argentina/Buenos_Aires', 'EST5EDT'])
      assert.ok(LocalDays.of(name), name);
    const wrong = ['', ' ', 'Rome', 'Europe/Roma', '+02:00', '02:00', 'Europe/Rome ', 'Europe/Rome\0'];
    for (const name of [...wrong, 'x'.repeat(65)]) assert.equal(LocalDays.of(name), null, name);
  });
});
