import { EXAMPLE_VAN } from '../devices/deviceExamples.ts';
import type { HistoryPoint } from './newestPoints.sql.ts';
import { emptyPeriod, type Period } from './summary/period.ts';

const FROM_MS = Date.UTC(2026, 1, 28, 23);
const TO_MS = Date.UTC(2026, 2, 1, 23);
const { lat, lng, speedKmh } = EXAMPLE_VAN.position;

export const EXAMPLE_HISTORY: HistoryPoint = {
  lat,
  lng,
  speedKmh: EXAMPLE_VAN.position.speedKmh,
  heading: 214,
  satellites: 11,
  recordedAtMs: EXAMPLE_VAN.position.recordedAtMs,
};

/** A day in Rome. */
export const EXAMPLE_SUMMARY = { fromMs: FROM_MS, toMs: TO_MS, by: 'day', tz: 'Europe/Rome' } as const;

export const EXAMPLE_DAY: Period = {
  fromMs: FROM_MS,
  toMs: TO_MS,
  points: 4_371,
  distanceM: 187_230,
  movingMs: 13_260_000,
  parkedMs: 29_940_000,
  gapMs: 43_180_000,
  maxSpeedKmh: 118.4,
  first: { recordedAtMs: Date.UTC(2026, 2, 1, 6, 12, 4), lat, lng, speedKmh },
  last: { recordedAtMs: Date.UTC(2026, 2, 1, 22, 59, 44), lat, lng, speedKmh: 0 },
};

export const NO_HISTORY: Period = emptyPeriod(FROM_MS, TO_MS);
