import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { encodeCounts, NO_CELLS, withQuarter } from '../../../src/history/tracks/cellCounts.ts';
import type { CellCounts } from '../../../src/history/tracks/cells.ts';
import { levelsOf, trackPicture, trackVectors, viewOf } from '../../../src/history/tracks/trackTile.ts';
import { inOneGo } from '../../../src/lib/workTurns.ts';
import { runs } from '../../support/torture.ts';
import { cellOfCode } from './naiveCells.ts';
import { alphasOfPicture, cellsOfVectors } from './readTile.ts';

const SIDE = 2 ** 21;
const LEVEL_OF = (count: number) => [1, 3, 10, 30].filter((from) => count >= from).length;
const ALPHAS = [0, 110, 160, 210, 255];

/** Cells of the grid around a corner of tiles and at the edge of the map, with what is stored of them and what is recent. */
const ANY_CELLS = fc.array(
  fc.record({
    x: fc.oneof(fc.integer({ min: 8_100, max: 8_300 }), fc.constantFrom(0, 1, SIDE - 1, SIDE - 2)),
    y: fc.oneof(fc.integer({ min: 8_100, max: 8_300 }), fc.constantFrom(0, SIDE - 1)),
    stored: fc.constantFrom(0, 1, 2, 3, 9, 40),
    recent: fc.constantFrom(0, 0, 1, 2, 8, 200),
  }),
  { maxLength: 150 },
);

/** Bit by bit. */
function codeOf(x: number, y: number): number {
  let code = 0;
  for (let bit = 0; bit < 21; bit++)
    code += ((Math.floor(x / 2 ** bit) % 2) + 2 * (Math.floor(y / 2 ** bit) % 2)) * 4 ** bit;
  return code;
}

const cellCounts = (counts: ReadonlyMap<number, number>): CellCounts => {
  const entries = [...counts].filter(([, count]) => count > 0).sort(([a], [b]) => a - b);
  return {
    codes: Float64Array.from(entries, ([code]) => code),
    counts: Uint8Array.from(entries, ([, count]) => count),
  };
};

/** The stored tiles of a zoom, made of those of zoom 13. */
function storedAt(zoom: number, counts: ReadonlyMap<number, number>): { tile: number; bytes: Buffer }[] {
  let tiles = new Map<number, CellCounts>();
  for (const tile of new Set([...counts.keys()].map((code) => Math.floor(code / 65_536)))) {
    const own = [...counts].filter(([code]) => Math.floor(code / 65_536) === tile);
    tiles.set(tile, cellCounts(new Map(own.map(([code, count]) => [code % 65_536, count]))));
  }
  for (let z = 13; z > zoom; z--) {
    const parents = new Map<number, CellCounts>();
    for (const [tile, cells] of tiles)
      parents.set(
        Math.floor(tile / 4),
        withQuarter(parents.get(Math.floor(tile / 4)) ?? NO_CELLS, tile % 4, cells),
      );
    tiles = parents;
  }
  return [...tiles].map(([tile, cells]) => ({ tile, bytes: encodeCounts(cells) }));
}

/** The tiles that are compared: around the corner of tiles at cell 8 192, and at the edges of the map. */
const TILES = [
  ...[0, 1, 5, 12, 13].flatMap((z) => {
    const at = Math.floor(8_192 / 2 ** (21 - z));
    return [
      { z, x: Math.floor(at / 256), y: Math.floor(at / 256) },
      { z, x: 0, y: 0 },
      { z, x: 2 ** z - 1, y: 0 },
    ];
  }),
  { z: 13, x: 31, y: 31 },
  { z: 13, x: 31, y: 32 },
  { z: 14, x: 63, y: 64 },
  { z: 16, x: 256, y: 256 },
  { z: 20, x: 4_096, y: 4_096 },
  { z: 21, x: 8_192, y: 8_192 },
  { z: 22, x: 16_385, y: 16_384 },
];

describe('a tile of tracks', () => {
  test('shows each cell of the grid that is in it, at every zoom and across 180°', () => {
    fc.assert(
      fc.property(ANY_CELLS, fc.constantFrom(...TILES), (cells, tile) => {
        const stored = new Map(cells.map(({ x, y, stored: count }) => [codeOf(x, y), count]));
        const recent = new Map(cells.map(({ x, y, recent: count }) => [codeOf(x, y), count]));
        const zoom = Math.min(13, tile.z);
        const scale = 4 ** (13 - zoom);
        // By cells of the zoom: the most of each, together.
        const expected = new Map<string, number>();
        for (const counts of [stored, recent]) {
          const most = new Map<number, number>();
          for (const [code, count] of counts)
            most.set(Math.floor(code / scale), Math.max(most.get(Math.floor(code / scale)) ?? 0, count));
          for (const [code, count] of most) {
            const cell = cellOfCode(code, zoom + 8);
            expected.set(cell, (expected.get(cell) ?? 0) + count);
          }
        }
        const view = viewOf(tile);
        const tiles = storedAt(zoom, stored).filter((each) => view.tiles.includes(each.tile));
        const levels = inOneGo(levelsOf(view, tiles, [cellCounts(recent)]));
        const picture = inOneGo(trackPicture(view, levels));
        const vectors = inOneGo(trackVectors(view, levels));
        const shown = picture === null ? new Map<string, number>() : alphasOfPicture(picture);
        const side = 256 / 2 ** (tile.z - zoom);
        for (let y = 0; y < 256; y++) {
          for (let x = 0; x < 256; x++) {
            const cell = `${Math.floor(tile.x * side + ((x + 0.5) * side) / 256)}/${Math.floor(tile.y * side + ((y + 0.5) * side) / 256)}`;
            const alpha = ALPHAS[LEVEL_OF(expected.get(cell) ?? 0)];
            if ((shown.get(`${x}/${y}`) ?? 0) !== alpha) assert.fail(`pixel ${x}/${y} of ${cell}`);
          }
        }
        if (side < 1) return;
        const drawn = vectors === null ? new Map<string, number>() : cellsOfVectors(vectors, 4096 / side);
        for (let y = 0; y < side; y++) {
          for (let x = 0; x < side; x++) {
            const level = LEVEL_OF(expected.get(`${tile.x * side + x}/${tile.y * side + y}`) ?? 0);
            const lines = drawn.get(`${x}/${y}`) ?? 0;
            assert.ok(level === 0 ? lines === 0 : lines >= 1 && lines <= level, `cell ${x}/${y}`);
          }
        }
      }),
      { seed: 1, numRuns: runs(40) },
    );
  });

  test('goes on into its neighbours: what crosses a side is drawn in both', () => {
    const row = new Map([8_190, 8_191, 8_192, 8_193].map((x) => [codeOf(x, 8_200), 1]));
    const lines = (x: number) => {
      const view = viewOf({ z: 13, x, y: 32 });
      const bytes = inOneGo(trackVectors(view, inOneGo(levelsOf(view, storedAt(13, row), []))));
      return [...cellsOfVectors(bytes!, 16).keys()].sort();
    };
    assert.deepEqual(lines(31), ['254/8', '255/8', '256/8']);
    assert.deepEqual(lines(32), ['-1/8', '0/8', '1/8']);
  });
});
