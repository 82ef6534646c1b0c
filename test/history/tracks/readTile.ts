import assert from 'node:assert/strict';
import { crc32, inflateSync } from 'node:zlib';
import { VectorTile } from '@mapbox/vector-tile';
import { PbfReader } from 'pbf';

/** The cells that the lines of a tile go through, `cell` units each, and the highest level of those of each. */
export function cellsOfVectors(bytes: Uint8Array, cell: number): Map<string, number> {
  const { layers } = new VectorTile(new PbfReader(bytes));
  assert.deepEqual(Object.keys(layers), ['tracks']);
  const layer = layers['tracks']!;
  assert.deepEqual([layer.version, layer.extent], [2, 4096]);
  const cells = new Map<string, number>();
  let before = 0;
  for (let n = 0; n < layer.length; n++) {
    const feature = layer.feature(n);
    const level = feature.properties['level'] as number;
    assert.equal(feature.type, 2);
    assert.ok(level >= before && level <= 4, 'the lowest level first');
    before = level;
    for (const [from, to] of feature.loadGeometry()) {
      assert.ok(from !== undefined && to !== undefined);
      const steps = Math.max(Math.abs(to.x - from.x), Math.abs(to.y - from.y)) / cell;
      const whole = Math.round(steps);
      assert.ok(steps === 0.5 || steps === whole, `${steps} cells`);
      for (let step = 0; step <= whole; step++) {
        const share = whole === 0 ? 0.5 : step / whole;
        const x = Math.floor((from.x + share * (to.x - from.x)) / cell);
        const y = Math.floor((from.y + share * (to.y - from.y)) / cell);
        cells.set(`${x}/${y}`, Math.max(cells.get(`${x}/${y}`) ?? 0, level));
      }
    }
  }
  return cells;
}

/** How opaque the pixels of a picture are that are not quite clear. Reads what W3C PNG says, unlike the service row by row. */
export function alphasOfPicture(png: Buffer): Map<string, number> {
  assert.equal(png.subarray(0, 8).toString('latin1'), '\x89PNG\r\n\x1a\n');
  const chunks = new Map<string, Buffer>();
  for (let at = 8; at < png.length; ) {
    const length = png.readUInt32BE(at);
    const type = png.toString('latin1', at + 4, at + 8);
    chunks.set(type, png.subarray(at + 8, at + 8 + length));
    assert.equal(png.readUInt32BE(at + 8 + length), crc32(png.subarray(at + 4, at + 8 + length)), type);
    at += 12 + length;
  }
  assert.deepEqual([...chunks.keys()], ['IHDR', 'IDAT', 'IEND']);
  const header = chunks.get('IHDR')!;
  assert.deepEqual([header.readUInt32BE(0), header.readUInt32BE(4)], [256, 256]);
  assert.deepEqual([...header.subarray(8)], [8, 4, 0, 0, 0], 'eight bits, grey with alpha');
  const pixels = inflateSync(chunks.get('IDAT')!);
  assert.equal(pixels.length, 256 * 513);
  const alphas = new Map<string, number>();
  for (let y = 0; y < 256; y++) {
    assert.equal(pixels[y * 513], 0, 'no filter');
    for (let x = 0; x < 256; x++) {
      const alpha = pixels[y * 513 + 2 + 2 * x]!;
      if (alpha > 0) alphas.set(`${x}/${y}`, alpha);
    }
  }
  return alphas;
}
