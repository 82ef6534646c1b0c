import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import {
  PACKED_POINTS_MAX,
  type PackedBlob,
  type PackedFacts,
  packColumns,
  unpackColumns,
} from '../../../src/history/codec/packedBlob.ts';
import {
  COLUMN_NAMES,
  type ColumnName,
  ColumnRoom,
  emptyColumns,
  type PackedColumns,
  type PointColumns,
  writeColumns,
} from '../../../src/history/codec/pointColumns.ts';
import { Way } from '../../../src/history/codec/way.ts';
import { inOneGo } from '../../../src/lib/workTurns.ts';
import { onTheWay, readTraces, reportsOf, type TraceFix } from '../../support/ingest/readTraces.ts';
import { readRecordings, skipWithoutData } from '../../support/ingest/recordings.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { IS_TORTURE, runs } from '../../support/torture.ts';

const NULLABLE: readonly ColumnName[] = ['odometersKm', 'receivedAtMs', 'lates'];
const TIMES: readonly ColumnName[] = ['recordedAtMs', 'receivedAtMs'];
const MS_MAX = 253_402_300_799_999;

const factsOf = ({ count, recordedAtMs }: PointColumns): PackedFacts => ({
  count,
  firstMs: recordedAtMs[0] as number,
  lastMs: recordedAtMs[count - 1] as number,
});
/** In memory that ends with the last byte. */
const pack = (points: PointColumns): PackedBlob => {
  const blob = packColumns(inOneGo(writeColumns(points)));
  return { ...blob, bytes: Buffer.from(Uint8Array.from(blob.bytes).buffer) };
};

/** The bits of each value, since −0 is 0 and NaN is no NaN to other comparisons. */
const bitsOf = (values: Float64Array): string[] =>
  Array.from(new BigUint64Array(values.slice().buffer), (bits) => bits.toString(16));

const bytesOf = ({ buffer, byteOffset, byteLength }: Float64Array): Buffer =>
  Buffer.from(buffer, byteOffset, byteLength);

/** Has what other points have left there. */
const ROOM = new ColumnRoom();

function assertComesBack(points: PointColumns): PackedBlob {
  const blob = pack(points);
  for (const room of [null, ROOM]) {
    const columns = opened(blob, points, room);
    const read = columns.columns();
    for (const name of COLUMN_NAMES) {
      if (Buffer.compare(bytesOf(read[name]), bytesOf(points[name])) !== 0)
        assert.deepEqual(bitsOf(read[name]), bitsOf(points[name]), name);
      assert.deepEqual(bytesOf(columns.column(name)), bytesOf(read[name]), name);
    }
  }
  assertPartsComeBack(blob, points);
  return blob;
}

/** Some of the places, as if nothing else of the blob was read. */
function assertPartsComeBack(blob: PackedBlob, points: PointColumns): void {
  const { count } = points;
  const third = Math.floor(count / 3);
  for (const [from, to] of [
    [third, 2 * third],
    [count - 1, count],
    [0, 1],
    [third, third],
  ] as const) {
    const part = opened(blob, points).columns(COLUMN_NAMES, from, to);
    assert.equal(part.count, to - from);
    for (const name of COLUMN_NAMES)
      assert.deepEqual(bitsOf(part[name]), bitsOf(points[name].subarray(from, to)), `${name} from ${from}`);
  }
}

function opened(blob: PackedBlob, points: PointColumns, room: ColumnRoom | null = null): PackedColumns {
  const columns = unpackColumns(blob, factsOf(points), room);
  assert.ok(typeof columns !== 'string', String(columns));
  return columns;
}

/** Any double; more of them odd than chance would have it. */
const odd = fc.oneof(
  fc.double(),
  fc.constantFrom(
    0,
    -0,
    1e-300,
    -1e-300,
    5e-324,
    0.1 + 0.2,
    1 / 3,
    2 ** 53,
    -(2 ** 53),
    1e15,
    9.99e22,
    1e308,
  ),
  fc.constantFrom(Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY, Number.NaN, Number.MAX_VALUE),
);
/** What devices send: so many decimals, or a multiple of a power of ten. */
const decimal = fc
  .tuple(fc.integer({ min: -(10 ** 9), max: 10 ** 9 }), fc.integer({ min: -3, max: 12 }))
  .map(([integer, exponent]) => (exponent < 0 ? integer * 10 ** -exponent : integer / 10 ** exponent));
const time = fc.integer({ min: -62_135_596_800_000, max: MS_MAX });

function columnOf(name: ColumnName, count: number): fc.Arbitrary<number[]> {
  const value = TIMES.includes(name) ? time : undefined;
  const kinds = value ? [value] : [odd, decimal, fc.integer({ min: 0, max: 3 })];
  // One kind for the whole column, or it would always be raw.
  const columns = kinds.map((kind) => {
    const nullable = fc.oneof({ weight: 3, arbitrary: kind }, fc.constant(Number.NaN));
    return fc.array(NULLABLE.includes(name) ? nullable : kind, { minLength: count, maxLength: count });
  });
  return fc.oneof(...columns);
}

const anyPoints: fc.Arbitrary<PointColumns> = fc.integer({ min: 1, max: 60 }).chain((count) =>
  fc.tuple(...COLUMN_NAMES.map((name) => columnOf(name, count))).map((columns) => {
    const points = emptyColumns(count);
    for (const [n, name] of COLUMN_NAMES.entries()) points[name].set(columns[n] as number[]);
    return points;
  }),
);

describe('packed points', () => {
  test('come back with every bit, whatever the columns hold', async () => {
    await fc.assert(
      fc.asyncProperty(anyPoints, async (points) => void assertComesBack(points)),
      { numRuns: runs(100) },
    );
  });

  test('come back where a single value fits no decimal, at the first place, the last, and alone', async () => {
    for (const value of [
      -0,
      1e-300,
      0.1 + 0.2,
      Number.NaN,
      Number.POSITIVE_INFINITY,
      2 ** 51,
      123456789.12345679,
    ])
      for (const count of [1, 2, 100])
        for (const at of new Set([0, count - 1])) {
          const points = emptyColumns(count);
          for (let n = 0; n < count; n++) points.recordedAtMs[n] = 1_000 * n;
          for (const name of COLUMN_NAMES.filter((each) => !TIMES.includes(each))) points[name][at] = value;
          assertComesBack(points);
        }
  });

  test('come back where every second value is missing and none fits a decimal', () => {
    const points = emptyColumns(PACKED_POINTS_MAX);
    for (const name of COLUMN_NAMES)
      for (let n = 0; n < points.count; n++)
        points[name][n] = NULLABLE.includes(name) && n % 2 === 0 ? Number.NaN : Math.sin(n) * 10 ** (n % 300);
    for (let n = 0; n < points.count; n++) {
      points.recordedAtMs[n] = Math.round(Math.sin(n) * MS_MAX);
      points.receivedAtMs[n] = n % 2 === 0 ? Number.NaN : Math.round(Math.cos(n) * MS_MAX);
    }
    assertComesBack(points);
  });

  describe('of recorded traces come back', { skip: skipWithoutData }, () => {
    /** Bytes a point of traces from which columns are made. */
    function bytesAPoint(
      traces: readonly TraceFix[][],
      fill: (points: PointColumns, trace: readonly TraceFix[]) => void,
    ) {
      let bytes = 0;
      let count = 0;
      for (const trace of traces) {
        for (let at = 0; at < trace.length; at += PACKED_POINTS_MAX) {
          const fixes = trace.slice(at, at + PACKED_POINTS_MAX);
          const points = emptyColumns(fixes.length);
          for (const [n, fix] of fixes.entries()) {
            points.recordedAtMs[n] = fix.recordedAtMs;
            points.lats[n] = fix.lat;
            points.lngs[n] = fix.lng;
          }
          fill(points, fixes);
          bytes += assertComesBack(points).bytes.length;
          count += fixes.length;
        }
      }
      return bytes / count;
    }
    const START_MS = Date.UTC(2026, 2, 2);
    /** One in six outside of torture. */
    const someTraces = async () => (await readTraces(START_MS)).filter((_, n) => IS_TORTURE || n % 6 === 0);

    test('whole, with the speed that is derived, in 4.5 bytes a point or less', async () => {
      const bytes = bytesAPoint(await someTraces(), (points, trace) => {
        points.speedsKmh.set(trace.map(({ speedKmh }) => speedKmh));
        points.receivedAtMs.fill(Number.NaN);
        points.lates.fill(Number.NaN);
      });
      assert.ok(bytes <= 4.5, `${bytes.toFixed(2)} bytes a point`);
    });

    test('every ten seconds on the way, as a tracker reports them, in 6 bytes a point or less', async () => {
      const random = seededRandom(3);
      const traces = (await someTraces()).map((trace) => onTheWay(trace, 10_000));
      const bytes = bytesAPoint(
        traces.filter(({ length }) => length > 200),
        (points, trace) => {
          for (const [n, report] of [...reportsOf(trace, random)].entries())
            for (const [c, value] of report.entries())
              points[COLUMN_NAMES[c] as ColumnName][n] = value ?? Number.NaN;
        },
      );
      assert.ok(bytes <= 6, `${bytes.toFixed(2)} bytes a point`);
    });

    test('of other devices, with altitudes and headings', async () => {
      for (const track of (await readRecordings()).values()) {
        const points = emptyColumns(track.length);
        for (const [n, fix] of track.entries()) {
          points.recordedAtMs[n] = Date.parse(fix.recorded_at);
          points.lats[n] = fix.latitude;
          points.lngs[n] = fix.longitude;
          points.altitudesM[n] = fix.altitude_m;
          points.speedsKmh[n] = fix.speed_kmh;
          points.headings[n] = fix.heading;
        }
        assertComesBack(points);
      }
    });
  });

  test('come back where speed and heading are near the way, through 180° and the poles, parked and turning', () => {
    const step = fc.record({
      ms: fc.integer({ min: 1, max: 60_000 }),
      lat: fc.integer({ min: -2_000, max: 2_000 }),
      lng: fc.integer({ min: -2_000, max: 2_000 }),
      isParked: fc.boolean(),
      errorKmh: fc.integer({ min: -5, max: 5 }),
      turn: fc.integer({ min: -20, max: 20 }),
    });
    const start = fc.record({
      lat: fc.constantFrom(0, 41_900_000, 89_999_000, -90_000_000),
      lng: fc.constantFrom(0, 179_999_000, -180_000_000),
      heading: fc.constantFrom(0, 360),
      decimals: fc.constantFrom(1, 10, 1_000),
    });
    fc.assert(
      fc.property(
        start,
        fc.array(step, { minLength: 30, maxLength: 80 }),
        ({ lat, lng, heading, decimals }, steps) => {
          const points = emptyColumns(steps.length);
          let ms = 0;
          let x: number = lng;
          let y: number = lat;
          for (const [n, each] of steps.entries()) {
            ms += each.ms;
            if (!each.isParked) {
              y = Math.max(-90e6, Math.min(90e6, y + each.lat));
              x += each.lng;
              if (Math.abs(x) > 180e6) x -= Math.sign(x) * 360e6;
            }
            points.recordedAtMs[n] = ms;
            points.lats[n] = y / 1e6;
            points.lngs[n] = x / 1e6;
          }
          const way = new Way(points.recordedAtMs, points.lats, points.lngs);
          const [speeds, headings] = [way.speedsKmh('around'), way.headings('before')];
          for (const [n, { errorKmh, turn }] of steps.entries()) {
            points.speedsKmh[n] = Math.round((speeds[n] as number) * decimals + errorKmh) / decimals;
            points.headings[n] = Number.isNaN(headings[n])
              ? heading
              : (Math.round(headings[n] as number) + turn + 360) % 360;
          }
          assertComesBack(points);
        },
      ),
      { numRuns: runs(60) },
    );
  });

  test('are written in steps of a part of a column, so that others have their turns in between', () => {
    const points = emptyColumns(PACKED_POINTS_MAX);
    for (let n = 0; n < points.count; n++) points.recordedAtMs[n] = 1_000 * n;
    const steps = writeColumns(points);
    let count = 1;
    while (steps.next().done !== true) count++;
    assert.ok(count >= 4 * COLUMN_NAMES.length, `${count} steps`);
  });

  test('are refused, never misread, when a bit of them changed', async () => {
    const points = emptyColumns(500);
    for (let n = 0; n < 500; n++) {
      points.recordedAtMs[n] = 1_000 * n;
      points.lats[n] = Math.round(4e6 * Math.sin(n)) / 1e5;
    }
    const blob = pack(points);
    await fc.assert(
      fc.property(fc.nat({ max: blob.bytes.length * 8 - 1 }), (bit) => {
        const bytes = Buffer.from(blob.bytes);
        bytes[bit >> 3] = (bytes[bit >> 3] as number) ^ (1 << (bit & 7));
        assert.equal(unpackColumns({ ...blob, bytes }, factsOf(points)), 'its checksum is wrong');
      }),
    );
    const facts = factsOf(points);
    assert.match(String(unpackColumns({ ...blob, codec: 99 }, facts)), /form 99/);
    for (const other of [{ count: 499 }, { firstMs: 1 }, { lastMs: 1 }])
      assert.match(String(unpackColumns(blob, { ...facts, ...other })), /other points/);
  });

  test('of bytes that are no columns are refused as well, with the right checksum', async () => {
    const facts = { count: 3, firstMs: 0, lastMs: 2 };
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 80 }), async (bytes) => {
        assert.equal(typeof unpackColumns(packColumns(bytes), facts), 'string');
      }),
      { numRuns: runs(100) },
    );
  });
});
