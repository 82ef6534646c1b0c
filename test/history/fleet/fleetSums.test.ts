import assert from 'node:assert/strict';
import { after, describe, test } from 'node:test';
import { packColumns } from '../../../src/history/codec/packedBlob.ts';
import { emptyColumns, type PointColumns, writeColumns } from '../../../src/history/codec/pointColumns.ts';
import { DeviceSums, type FleetSummaryRequest } from '../../../src/history/fleet/deviceSums.ts';
import { FleetSums } from '../../../src/history/fleet/fleetSums.ts';
import type { PackedRow } from '../../../src/history/packedPoints.sql.ts';
import { MOTION, type PointsRead, type StoredPoints } from '../../../src/history/points.sql.ts';
import { LocalDays } from '../../../src/history/summary/localDays.ts';
import { DamagedPoints } from '../../../src/lib/errors.ts';
import { DAY_MS } from '../../../src/lib/time.ts';
import { inOneGo } from '../../../src/lib/workTurns.ts';
import { seededRandom } from '../../support/seededRandom.ts';

const FROM_MS = Date.UTC(2025, 9, 25);
const TO_MS = FROM_MS + 4 * DAY_MS;
const ROME = LocalDays.of('Europe/Rome') ?? LocalDays.UTC;

function request(by: 'total' | 'day' = 'day', days = ROME): FleetSummaryRequest {
  return { by, days, fromMs: FROM_MS, toMs: TO_MS };
}

function track(count: number, seed: number): PointColumns {
  const random = seededRandom(seed);
  const points = emptyColumns(count);
  let [ms, lat, speed] = [FROM_MS, 41, 0];
  for (let n = 0; n < count; n++) {
    if (random() < 0.1) speed = random() < 0.4 ? 0 : Math.round(random() * 90);
    ms += 1_000 * Math.ceil(random() * ((2 * (TO_MS - FROM_MS)) / count / 1_000));
    lat += speed * 1e-6;
    points.recordedAtMs[n] = ms;
    points.lats[n] = Math.round(lat * 1e6) / 1e6;
    points.lngs[n] = 12.5;
    points.speedsKmh[n] = speed;
  }
  return points;
}

function packedRow(points: PointColumns): PackedRow {
  const blob = packColumns(inOneGo(writeColumns(points)));
  const [firstMs, lastMs] = [points.recordedAtMs[0] ?? 0, points.recordedAtMs.at(-1) ?? 0];
  // With memory of their own, as Postgres' answers have.
  const bytes = Buffer.from(new Uint8Array(blob.bytes).buffer);
  return { deviceId: 7, firstMs, lastMs, count: points.count, ...blob, bytes };
}

const stored = (n: number, rows: PointColumns, packed: readonly PackedRow[] = []): StoredPoints => {
  return { n, fromMs: FROM_MS, toMs: TO_MS, rows, packed, columns: MOTION };
};

/** What one statement has read of these devices, all to their ends. */
function partOf(devices: readonly (StoredPoints | null)[]): PointsRead {
  return { found: devices, until: { n: devices.length - 1, ms: TO_MS } };
}

describe('the thread that adds up points', () => {
  const sums = new FleetSums();
  after(() => sums.close());

  test('gives what the service itself would give, of rows and packed points, in parts', async () => {
    for (const [by, days] of [
      ['total', LocalDays.UTC],
      ['day', ROME],
    ] as const) {
      const own = new DeviceSums(request(by, days));
      const call = sums.begin(1, request(by, days));
      for (let seed = 1; seed <= 6; seed++) {
        const rows = track(900, 100 + seed);
        const part = partOf([
          stored(0, rows),
          seed % 3 === 0 ? null : stored(1, emptyColumns(0), [packedRow(track(2_000, seed))]),
          stored(2, emptyColumns(0)),
        ]);
        // A device may end with a later statement.
        const isCut = seed % 2 === 0;
        const sent = isCut ? { ...part, until: { n: 2, ms: TO_MS - 1 } } : part;
        const expected = inOneGo(own.add(sent));
        assert.deepEqual(await call.add(sent), expected);
        // The thread has the points now: they were not copied.
        for (const points of sent.found)
          for (const { bytes } of points?.packed ?? []) assert.equal(bytes.length, 0);
        assert.ok(expected.length > 0);
      }
      call.end();
    }
  });

  test('takes further parts of a call while it adds up the first, and answers them in order', async () => {
    const own = new DeviceSums(request());
    const parts = [1, 2, 3, 4].map((seed) => partOf([stored(0, track(300 * (5 - seed), seed))]));
    const expected = parts.map((part) => inOneGo(own.add(part)));
    const call = sums.begin(1, request());
    const order: number[] = [];
    const added = await Promise.all(
      parts.map(async (part, n) => {
        const ended = await call.add(part);
        order.push(n);
        return ended;
      }),
    );
    assert.deepEqual(added, expected);
    assert.deepEqual(order, [0, 1, 2, 3]);
    call.end();
  });

  test('gives an account its turn while another one has much to add up', async () => {
    const heavy = partOf(Array.from({ length: 200 }, (_, n) => stored(n, track(4_000, n))));
    const light = partOf([stored(0, track(100, 1))]);
    const [busy, calm] = [sums.begin(1, request()), sums.begin(2, request())];
    const order: string[] = [];
    const first = busy.add(heavy).then(() => order.push('heavy'));
    await calm.add(light).then(() => order.push('light'));
    await first;
    assert.deepEqual(order, ['light', 'heavy']);
    busy.end();
    calm.end();
  });

  test('says which points are damaged, and goes on with other calls', async () => {
    const row = packedRow(track(500, 3));
    const damaged = { ...packedRow(track(500, 3)), checksum: row.checksum ^ 1 };
    const [broken, other] = [sums.begin(1, request()), sums.begin(1, request())];
    await assert.rejects(broken.add(partOf([stored(0, emptyColumns(0), [damaged])])), (error) => {
      assert.ok(error instanceof DamagedPoints);
      assert.deepEqual([error.damage.deviceId, error.damage.firstMs], [7, row.firstMs]);
      return true;
    });
    broken.end();
    assert.equal((await other.add(partOf([stored(0, emptyColumns(0), [row])]))).length, 1);
    other.end();
  });

  test('fails the calls that it has begun when it ends, and no other', async () => {
    const own = new FleetSums();
    const [first, second] = [own.begin(1, request()), own.begin(2, request())];
    await first.add(partOf([stored(0, track(10, 1))]));
    const many = partOf(Array.from({ length: 50 }, (_, n) => stored(n, track(4_000, n))));
    const adding = [first.add(many), first.add(many)];
    await Promise.all([...adding.map((each) => assert.rejects(each, /has ended/)), own.close()]);
    await assert.rejects(second.add(partOf([])), /has ended/);
    first.end();
    second.end();
    assert.throws(() => own.begin(1, request()), /has ended/);
  });
});
