import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import type { TrackColumns, TrackPoint } from '../../../src/history/summary/motionWalk.ts';
import {
  byTile,
  decodeCounts,
  encodeCounts,
  sumOfAll,
  withQuarter,
} from '../../../src/history/tracks/cellCounts.ts';
import { type CellCounts, CellTally } from '../../../src/history/tracks/cells.ts';
import { drawnTrack, newlyDriven } from '../../../src/history/tracks/drawnTrack.ts';
import { weekOf } from '../../../src/history/tracks/tracks.sql.ts';
import { inOneGo } from '../../../src/lib/workTurns.ts';
import { readTraces } from '../../support/ingest/readTraces.ts';
import { skipWithoutData } from '../../support/ingest/recordings.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { runs } from '../../support/torture.ts';
import { cellOfCode, differences, naiveCells } from './naiveCells.ts';

const START_MS = Date.UTC(2026, 2, 2);
const M_PER_DEGREE = 111_132;

const columnsOf = (track: readonly TrackPoint[]): TrackColumns => ({
  count: track.length,
  recordedAtMs: track.map((point) => point.recordedAtMs),
  lats: track.map((point) => point.lat),
  lngs: track.map((point) => point.lng),
  speedsKmh: track.map((point) => point.speedKmh),
});

const drawn = (track: readonly TrackPoint[]): Set<string> => {
  const { codes, counts } = inOneGo(inOneGo(drawnTrack(columnsOf(track))).counted());
  assert.ok(counts.every((count) => count === 1));
  assert.ok(
    codes.every((code, n) => n === 0 || code > codes[n - 1]!),
    'ascending',
  );
  return new Set(Array.from(codes, (code) => cellOfCode(code)));
};

/** A point every `stepSeconds`, from a place on. */
const straight = (
  count: number,
  { lat = 45, lng = 9, stepSeconds = 10, eastM = 100, speedKmh = 36 } = {},
): TrackPoint[] =>
  Array.from({ length: count }, (_, n) => {
    const at = lng + (n * eastM) / (M_PER_DEGREE * Math.cos((lat * Math.PI) / 180));
    return {
      recordedAtMs: START_MS + n * stepSeconds * 1_000,
      lat,
      lng: at > 180 ? at - 360 : at,
      speedKmh,
    };
  });

describe('a drawn track', () => {
  test('has all cells between its points', () => {
    const cells = drawn(straight(11));
    assert.deepEqual(cells, naiveCells(straight(11)));
    assert.ok(Math.abs(cells.size - 1_000 / 13.5) < 3, `${cells.size} cells of 13.5 m`);
  });

  test('goes on at 180°, and ends where the map does', () => {
    const across = drawn(straight(5, { lng: 179.999 }));
    assert.deepEqual(across, naiveCells(straight(5, { lng: 179.999 })));
    assert.ok([...across].some((cell) => cell.startsWith('0/')));
    assert.equal(drawn(straight(5, { lat: 85.06 })).size, 0);
    assert.equal(drawn(straight(5, { lat: 90 })).size, 0);
    for (const pole of [-89.9999, 90 - 1e-12]) {
      const toAndFro = straight(6).map((point, n) => (n % 2 === 0 ? { ...point, lat: pole } : point));
      assert.equal(drawn(toAndFro).size, 0);
    }
  });

  test('has nothing of gaps, of jumps, of errors of the receiver and of a single point', () => {
    assert.equal(drawn(straight(5, { stepSeconds: 601 })).size, 0);
    assert.equal(drawn(straight(5, { stepSeconds: 60, eastM: 2_100 })).size, 0);
    assert.equal(drawn(straight(5, { stepSeconds: 10, eastM: 800, speedKmh: 288 })).size, 0);
    assert.ok(drawn(straight(5, { stepSeconds: 60, eastM: 1_900 })).size > 100);
    assert.equal(drawn(straight(1)).size, 0);
    assert.equal(drawn([]).size, 0);
  });

  test('has no star around a parked vehicle', () => {
    const random = seededRandom(7);
    const noise = () => ((random() + random() + random() - 1.5) * 20) / M_PER_DEGREE;
    const parked = straight(8_640, { eastM: 0, speedKmh: 0 }).map((point) => ({
      ...point,
      ...{ lat: point.lat + noise(), lng: point.lng + noise(), speedKmh: random() < 0.2 ? 12 : 0 },
    }));
    assert.deepEqual(drawn(parked), new Set());
  });

  test('has at most 1 024 tiles a day, and others are not held up', () => {
    const everywhere = Array.from({ length: 1_100 }, (_, n) =>
      straight(2, { lat: -60 + (n % 100), lng: -170 + Math.floor(n / 100) * 20 }).map((point) => ({
        ...point,
        recordedAtMs: point.recordedAtMs + n * 60_000,
      })),
    ).flat();
    const cells = inOneGo(drawnTrack(columnsOf(everywhere)));
    assert.equal(cells.tiles, 1_024);
    assert.equal(byTile(inOneGo(cells.counted())).size, 1_024);
  });

  test('is that of a naive program on any track', () => {
    const steps = fc.array(
      fc.record({
        stepMs: fc.constantFrom(1_000, 1e4, 3e4, 6e4, 119_999, 120_000, 600_000, 600_001),
        northM: fc.constantFrom(0, 0, 5, -20, 45, 60, 301, -1_003, 2_500),
        eastM: fc.constantFrom(0, 0, 3, 30, -51, 650),
        speedKmh: fc.constantFrom(0, 0, 4.9, 5, 30, 30, 130),
      }),
      { maxLength: 80 },
    );
    fc.assert(
      fc.property(steps, (all) => {
        let at = { recordedAtMs: START_MS, lat: 44.1234, lng: 179.997, speedKmh: 0 };
        const track = all.map(({ stepMs, northM, eastM, speedKmh }): TrackPoint => {
          const lng = at.lng + eastM / 80_000;
          at = {
            recordedAtMs: at.recordedAtMs + stepMs,
            lat: at.lat + northM / M_PER_DEGREE,
            lng: lng > 180 ? lng - 360 : lng,
            speedKmh,
          };
          return at;
        });
        assert.deepEqual(differences(drawn(track), naiveCells(track)), []);
      }),
      { seed: 1, numRuns: runs(100) },
    );
  });

  test('is that of a naive program on recorded tracks', { skip: skipWithoutData }, async () => {
    let cells = 0;
    for (const trace of (await readTraces(START_MS)).slice(0, runs(3))) {
      const track = trace.slice(0, runs(4_000));
      const found = drawn(track);
      // A step that ends on the side of a cell may be rounded to either.
      assert.ok(differences(found, naiveCells(track)).length <= found.size / 1_000);
      cells += found.size;
    }
    assert.ok(cells > 1_000);
  });
});

describe('what points add to a day', () => {
  const counted = (all: readonly TrackPoint[], before: readonly TrackPoint[]): CellCounts | null => {
    const driven = inOneGo(newlyDriven(columnsOf(all), columnsOf(before), weekOf(START_MS)));
    if (driven === null) return null;
    const cells = decodeCounts(driven.bytes);
    assert.equal(driven.cells, cells.codes.length);
    assert.ok(driven.tiles >= byTile(cells).size);
    return cells;
  };

  test('is what was not driven before, so a cell counts once a day', () => {
    const [all, part] = [straight(21), straight(9)];
    const first = counted(part, []);
    const later = counted(all, part);
    assert.ok(first !== null && later !== null);
    const sum = inOneGo(sumOfAll([first, later]));
    assert.ok(sum.counts.every((count) => count === 1));
    assert.deepEqual(new Set(Array.from(sum.codes, (code) => cellOfCode(code))), naiveCells(all));
    assert.equal(counted(all, all), null);
  });
});

/** Cells of a tile with their counts. */
const ANY_COUNTS = fc
  .dictionary(fc.integer({ min: 0, max: 65_535 }).map(String), fc.integer({ min: 1, max: 255 }), {
    maxKeys: 60,
  })
  .map((counts): CellCounts => {
    const codes = Object.keys(counts)
      .map(Number)
      .sort((a, b) => a - b);
    return { codes: Float64Array.from(codes), counts: Uint8Array.from(codes, (code) => counts[code]!) };
  });
const asMap = ({ codes, counts }: CellCounts) => new Map(Array.from(codes, (code, n) => [code, counts[n]!]));

test('a tally of cells ends with 262 144 of them', () => {
  const tally = new CellTally();
  const cells = {
    codes: Float64Array.from({ length: 300_000 }, (_, n) => n * 7_654_321),
    counts: new Uint8Array(),
  };
  for (let n = 0; n < 2; n++) inOneGo(tally.addEach(cells));
  const { codes, counts } = inOneGo(tally.counted());
  assert.deepEqual(codes, cells.codes.slice(0, 262_144));
  assert.ok(counts.every((count) => count === 2));
});

describe('counts of cells', () => {
  const options = { seed: 1, numRuns: runs(100) };

  test('are the same as bytes, and nothing where the bytes are damaged', () => {
    fc.assert(
      fc.property(ANY_COUNTS, fc.nat(), (cells, at) => {
        const bytes = encodeCounts(cells);
        assert.deepEqual(decodeCounts(bytes), cells);
        assert.doesNotThrow(() => decodeCounts(bytes.subarray(0, at % bytes.length)));
      }),
      options,
    );
    assert.deepEqual(decodeCounts(Buffer.from('no zstd')).codes.length, 0);
  });

  test('are added cell by cell, up to 255', () => {
    fc.assert(
      fc.property(fc.array(ANY_COUNTS, { maxLength: 5 }), (all) => {
        const expected = new Map<number, number>();
        for (const cells of all)
          for (const [code, count] of asMap(cells))
            expected.set(code, Math.min(255, (expected.get(code) ?? 0) + count));
        assert.deepEqual(asMap(inOneGo(sumOfAll(all))), new Map([...expected].sort(([a], [b]) => a - b)));
      }),
      options,
    );
  });

  test('of four cells are the most of them in the tile above', () => {
    fc.assert(
      fc.property(ANY_COUNTS, ANY_COUNTS, fc.nat(3), (parent, child, quarter) => {
        const expected = new Map(
          [...asMap(parent)].filter(([code]) => Math.floor(code / 16_384) !== quarter),
        );
        for (const [code, count] of asMap(child)) {
          const above = quarter * 16_384 + Math.floor(code / 4);
          expected.set(above, Math.max(expected.get(above) ?? 0, count));
        }
        assert.deepEqual(
          asMap(withQuarter(parent, quarter, child)),
          new Map([...expected].sort(([a], [b]) => a - b)),
        );
      }),
      options,
    );
  });

  test('are divided by tiles', () => {
    const cells = {
      codes: Float64Array.of(1, 65_535, 65_536, 2 ** 42 - 1),
      counts: Uint8Array.of(1, 2, 3, 4),
    };
    assert.deepEqual(
      [...byTile(cells)].map(([tile, { codes, counts }]) => [tile, [...codes], [...counts]]),
      [
        [0, [1, 65_535], [1, 2]],
        [1, [0], [3]],
        [2 ** 26 - 1, [65_535], [4]],
      ],
    );
  });
});
