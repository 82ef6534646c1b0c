import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { gzipSync } from 'node:zlib';

const HEADER_BYTES = 127;
const GZIP = 2;
const NOT_COMPRESSED = 1;
export const MVT = 1;
export const PNG = 2;

/** A green pixel. */
export const PIXEL = Buffer.from(
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M/wHwAEBgIApD5fRAAAAABJRU5ErkJggg==',
  'base64',
);

/** One layer with one polygon that covers the tile (vector tile specification 2.1, section 4). */
export function vectorTile(layer: string): Buffer {
  const geometry = [9, 0, 0, 26, ...varint(8_192), 0, 0, ...varint(8_192), ...varint(8_191), 0, 15];
  const feature = [0x18, 3, 0x22, geometry.length, ...geometry];
  const name = Buffer.from(layer);
  const body = [
    0x0a,
    name.length,
    ...name,
    0x12,
    feature.length,
    ...feature,
    0x28,
    ...varint(4_096),
    0x78,
    2,
  ];
  return Buffer.from([0x1a, body.length, ...body]);
}

interface Archive {
  readonly type: number;
  /** As it is before it is compressed. */
  readonly tile: Uint8Array;
  /** All tiles of this zoom are the same; 0: there is one. */
  readonly zoom?: number;
  readonly metadata?: object;
}

/** Writes an archive with one content of all tiles (PMTiles specification 3); gone after the test. Vector tiles are compressed. */
export async function tileFile(t: TestContext, archive: Archive): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'fleet-tiles-'));
  t.after(() => rm(folder, { recursive: true }));
  const path = join(folder, 'one.pmtiles');
  await writeFile(path, archiveBytes(archive));
  return path;
}

export function archiveBytes({ type, tile, zoom = 0, metadata = {} }: Archive): Buffer {
  const stored = type === MVT ? gzipSync(tile) : tile;
  // One entry: the id of the first tile, how many tiles it stands for, its length, its offset plus one.
  const count = 4 ** zoom;
  const directory = Buffer.from([
    1,
    ...varint((count - 1) / 3),
    ...varint(count),
    ...varint(stored.length),
    1,
  ]);
  const json = Buffer.from(JSON.stringify(metadata));
  const header = Buffer.alloc(HEADER_BYTES);
  header.write('PMTiles', 'latin1');
  header[7] = 3;
  let offset = HEADER_BYTES;
  for (const [n, part] of [directory, json, Buffer.alloc(0), stored].entries()) {
    header.writeBigUInt64LE(BigInt(offset), 8 + 16 * n);
    header.writeBigUInt64LE(BigInt(part.length), 16 + 16 * n);
    offset += part.length;
  }
  for (const at of [72, 80, 88]) header.writeBigUInt64LE(1n, at);
  header.set([1, NOT_COMPRESSED, type === MVT ? GZIP : NOT_COMPRESSED, type, zoom, zoom], 96);
  for (const [n, degrees] of [-180, -85, 180, 85].entries()) header.writeInt32LE(degrees * 1e7, 102 + 4 * n);
  return Buffer.concat([header, directory, json, stored]);
}

function varint(value: number): number[] {
  return value < 128 ? [value] : [(value & 127) | 128, ...varint(value >>> 7)];
}
