import assert from 'node:assert/strict';
import { test } from 'node:test';
import fc from 'fast-check';
import { decodeMoves, encodeMoves, type Move } from '../../src/flows/moves.ts';

const double = (min: number, max: number) => fc.double({ min, max, noNaN: true });

const position = fc.record(
  {
    recordedAtMs: fc.integer({ min: -62_135_596_800_000, max: 253_402_300_799_999 }),
    lat: double(-90, 90),
    lng: double(-180, 180),
    altitudeM: double(-1e5, 1e5),
    speedKmh: double(0, 1e9),
    odometerKm: fc.option(double(0, 1e8)),
    movedAtMs: fc.maxSafeNat(),
  },
  { noNullPrototype: true },
);
const move: fc.Arbitrary<Move> = fc.record(
  { deviceId: fc.maxSafeNat(), position },
  { noNullPrototype: true },
);

test('moves come out of the feed as they went in, to the last bit', () => {
  fc.assert(
    fc.property(fc.array(move, { maxLength: 20 }), (moves) => {
      assert.deepEqual([...decodeMoves(encodeMoves(moves))], moves);
    }),
    { seed: 2, numRuns: 200 },
  );
});
