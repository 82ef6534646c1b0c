import assert from 'node:assert/strict';
import { test } from 'node:test';
import { packColumns } from '../../src/history/codec/packedBlob.ts';
import { emptyColumns, writeColumns } from '../../src/history/codec/pointColumns.ts';
import { tallyStored } from '../../src/history/findPresence.ts';
import type { PackedRow } from '../../src/history/packedPoints.sql.ts';
import { PLACE as COLUMNS } from '../../src/history/points.sql.ts';
import { PresenceTally } from '../../src/history/presence.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';

const FIRST_MS = 1_700_000_000_000;
/** Where the latitude is 41 to 42. */
const PLACE = {
  boxes: [{ minX: 10, maxX: 20, minY: 41, maxY: 42 }],
  contains: () => true,
  closenessM: (lat: number) => lat,
};

/** A row with one point a minute. */
async function rowOf(firstMinute: number, lats: readonly number[]): Promise<PackedRow> {
  const points = emptyColumns(lats.length);
  lats.forEach((lat, n) => {
    points.recordedAtMs[n] = FIRST_MS + (firstMinute + n) * 60_000;
    points.lats[n] = lat;
    points.lngs[n] = 15;
  });
  const [firstMs, lastMs] = [points.recordedAtMs[0] as number, points.recordedAtMs.at(-1) as number];
  const blob = packColumns(inOneGo(writeColumns(points)));
  return { deviceId: 1, firstMs, lastMs, count: points.count, ...blob };
}

/** Minutes inside by packed rows that follow each other, a point a minute. */
async function minutesInside(...rows: (readonly number[])[]): Promise<number> {
  const packed: PackedRow[] = [];
  let minute = 0;
  for (const lats of rows) {
    packed.push(await rowOf(minute, lats));
    minute += lats.length;
  }
  const tally = new PresenceTally(PLACE);
  const window = { fromMs: FIRST_MS, toMs: FIRST_MS + minute * 60_000 };
  const stored = { ...window, n: 0, rows: emptyColumns(0), packed, columns: COLUMNS };
  assert.equal(inOneGo(tallyStored(tally, stored)), minute, 'points');
  return (tally.presence?.insideMs ?? 0) / 60_000;
}

for (const { what, rows, minutes } of [
  { what: 'goes on from row to row', rows: [[41.5, 41.5], [41.6]], minutes: 2 },
  {
    what: 'ends at a row that is outside',
    rows: [
      [41.5, 41.5],
      [50, 51],
      [41.6, 41.6],
    ],
    minutes: 2,
  },
  { what: 'ends at a point outside', rows: [[41.5, 50, 41.5, 41.5]], minutes: 1 },
  { what: 'never begins in rows outside', rows: [[50], [51]], minutes: 0 },
]) {
  test(`a time inside ${what}`, async () => {
    assert.equal(await minutesInside(...rows), minutes);
  });
}
