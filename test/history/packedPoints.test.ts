import assert from 'node:assert/strict';
import { test } from 'node:test';
import { packColumns } from '../../src/history/codec/packedBlob.ts';
import { emptyColumns, writeColumns } from '../../src/history/codec/pointColumns.ts';
import { type PackedRow, unpackRowIf } from '../../src/history/packedPoints.sql.ts';
import { DamagedPoints } from '../../src/lib/damagedPoints.ts';
import { inOneGo } from '../../src/lib/workTurns.ts';

const FIRST_MS = 1_700_000_000_000;
const COUNT = 20;
const always = () => true;
const never = () => false;

async function packedRow(): Promise<PackedRow> {
  const points = emptyColumns(COUNT);
  for (let n = 0; n < COUNT; n++) {
    points.recordedAtMs[n] = FIRST_MS + n * 1_000;
    points.lats[n] = 41 + n / 100;
    points.lngs[n] = 12 + n / 50;
  }
  const blob = packColumns(inOneGo(writeColumns(points)));
  return { deviceId: 7, firstMs: FIRST_MS, lastMs: FIRST_MS + (COUNT - 1) * 1_000, count: COUNT, ...blob };
}

test('whoever unpacks a row sees all its places first, and then its times', async () => {
  const row = await packedRow();
  const seen: number[][] = [];
  const columns = unpackRowIf(row, (lats, lngs) => {
    seen.push([lats.length, lats[19] as number, lngs[19] as number]);
    return true;
  });
  assert.deepEqual(seen, [[COUNT, 41.19, 12.38]]);
  assert.equal(columns?.column('recordedAtMs').at(-1), row.lastMs);
});

test('a row whose places are not wanted is not unpacked further', async () => {
  assert.equal(unpackRowIf(await packedRow(), never), null);
});

for (const { what, change, isWanted } of [
  { what: 'a wrong checksum, wanted', change: { checksum: 1 }, isWanted: always },
  { what: 'a wrong checksum, not wanted', change: { checksum: 1 }, isWanted: never },
  { what: 'another form', change: { codec: 9 }, isWanted: never },
  { what: 'another number of points', change: { count: COUNT + 1 }, isWanted: never },
  { what: 'another first time, wanted', change: { firstMs: FIRST_MS - 1 }, isWanted: always },
  { what: 'another last time, wanted', change: { lastMs: FIRST_MS }, isWanted: always },
]) {
  test(`a row with ${what}, is damaged`, async () => {
    const row = { ...(await packedRow()), ...change };
    assert.throws(() => unpackRowIf(row, isWanted), DamagedPoints);
  });
}
