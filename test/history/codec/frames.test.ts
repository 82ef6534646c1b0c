import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { loadDecoder, readFrame, writeFrame } from '../../../src/history/codec/frames.ts';
import { VarintReader, VarintWriter } from '../../../src/lib/varints.ts';
import { seededRandom } from '../../support/seededRandom.ts';
import { runs } from '../../support/torture.ts';

const random = seededRandom(5);
/** Lengths of numbers, as residuals have them. */
const lengths = (count: number, most: number) =>
  Uint8Array.from({ length: count }, () => Math.floor(random() * random() * most));

const COLUMNS = [0, 1, 2, 63, 64, 65, 2_880, 10_000].flatMap((count) =>
  [1, 2, 12, 54, 256].map((most) => lengths(count, most)),
);

function framed(bytes: Uint8Array): Uint8Array {
  const writer = new VarintWriter(64);
  writeFrame(writer, bytes);
  return Uint8Array.from(writer.bytes());
}

/** What is read, or the name of the error. */
function readOrRefused(frame: Uint8Array, count: number): Uint8Array | string {
  try {
    return Uint8Array.from(readFrame(new VarintReader(frame), count));
  } catch (error) {
    return (error as Error).name;
  }
}

/** A frame of which a byte is another one, or that ends early. */
function damaged(frame: Uint8Array): Uint8Array {
  const at = Math.floor(random() * frame.length);
  if (random() < 0.2) return frame.slice(0, at);
  const bytes = frame.slice();
  bytes[at] = (bytes[at] as number) ^ (1 << Math.floor(random() * 8));
  return bytes;
}

describe('compressed bytes', () => {
  test('are read by node:zlib, and the same by the faster decompressor once it is loaded', async () => {
    const cases = COLUMNS.map((bytes) => ({ bytes, frame: framed(bytes) }));
    const harmed = Array.from({ length: runs(500) }, (_, n) => {
      const { bytes, frame } = cases[n % cases.length]!;
      return { frame: damaged(frame), count: bytes.length + (n % 5 === 0 ? 1 : 0) };
    }).filter(({ frame }) => frame.length > 0);
    const read = () => cases.map(({ bytes, frame }) => readFrame(new VarintReader(frame), bytes.length));
    const refused = () => harmed.map(({ frame, count }) => readOrRefused(frame, count));

    // Nothing loads while this goes on.
    const [first, firstRefused] = [read(), refused()];
    for (const [n, bytes] of first.entries()) assert.deepEqual(Uint8Array.from(bytes), cases[n]?.bytes);
    assert.ok(await loadDecoder());
    assert.deepEqual(
      read().map((bytes) => Uint8Array.from(bytes)),
      cases.map(({ bytes }) => bytes),
    );

    // A damaged frame may be a good one of other bytes: the checksum of the whole finds that. But they are as many.
    for (const [n, result] of refused().entries()) {
      for (const each of [result, firstRefused[n]])
        if (typeof each === 'object') assert.equal(each.length, harmed[n]?.count);
    }
    assert.ok(firstRefused.filter((each) => typeof each === 'string').length > harmed.length / 4);
  });
});
