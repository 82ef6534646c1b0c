import { constants, zstdCompressSync, zstdDecompressSync } from 'node:zlib';
import { ZSTDDecoder } from 'zstddec';
import type { VarintReader, VarintWriter } from '../../lib/varints.ts';

/**
 * Few values, each with its own frequency: nearly all of what can be gained is Huffman's code of single bytes, and the short
 * matches that a search finds take more than they save.
 */
const PARAMETERS = {
  [constants.ZSTD_c_compressionLevel]: 3,
  [constants.ZSTD_c_strategy]: constants.ZSTD_fast,
  [constants.ZSTD_c_minMatch]: 7,
};
/** In front of every frame. */
const MAGIC = Buffer.from('28b52ffd', 'hex');

/**
 * Compresses bytes: a byte that is all of them, after a zero, or a Zstandard frame without its magic number, after its
 * length.
 */
export function writeFrame(writer: VarintWriter, bytes: Uint8Array): void {
  const first = bytes[0] ?? 0;
  if (bytes.every((byte) => byte === first)) {
    writer.number(0);
    writer.byte(first);
    return;
  }
  const frame = zstdCompressSync(bytes, { params: PARAMETERS, pledgedSrcSize: bytes.length });
  writer.number(frame.length - MAGIC.length);
  writer.append(frame.subarray(MAGIC.length));
}

/** Reads `count` bytes. Throws RangeError, or an error of zlib, where the frame is damaged. */
export function readFrame(reader: VarintReader, count: number): Uint8Array {
  const frameBytes = reader.number();
  if (frameBytes === 0) return new Uint8Array(count).fill(reader.byte());
  const bytes = decompressed(Buffer.concat([MAGIC, reader.take(frameBytes)]), count);
  if (bytes.length !== count) throw new RangeError('a column has more values than points');
  return bytes;
}

/**
 * Keeps its memory. node:zlib makes a context for each frame and asks the processor what it is able to do, which interrupts a
 * virtual machine: that takes two or three times as long as to decompress some thousand bytes.
 */
const decoder = new ZSTDDecoder();
let loading: Promise<boolean> | null = null;
let isLoaded = false;

/** Loads the faster decompressor; false where that is not possible. Until it is there, node:zlib is used. */
export function loadDecoder(): Promise<boolean> {
  loading ??= decoder.init().then(
    () => {
      isLoaded = true;
      return true;
    },
    () => false, // WebAssembly is switched off
  );
  return loading;
}

/** Of a damaged frame it may be fewer bytes. */
function decompressed(frame: Uint8Array, count: number): Uint8Array {
  if (isLoaded) return decoder.decode(frame, count);
  void loadDecoder();
  // One piece of memory, and a byte more: zlib takes another piece when one is full.
  const chunkSize = Math.max(count + 1, CHUNK_BYTES_MIN);
  return zstdDecompressSync(frame, { maxOutputLength: count, chunkSize });
}

/** Of what zlib takes. */
const CHUNK_BYTES_MIN = 64;
