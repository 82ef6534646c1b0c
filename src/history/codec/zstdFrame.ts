/** Behind the magic number. */
const DESCRIPTOR_AT = 4;
const IS_SINGLE_SEGMENT = 0x20;
const DICTIONARY_BYTES = [0, 1, 2, 4] as const;
/** A size of two bytes begins there: what is smaller has one byte. */
const TWO_BYTES_FROM = 256;

/**
 * How long the content of a Zstandard frame is, by its header (RFC 8878, section 3.1.1.1). Null where the header does not
 * say it, or in more than four bytes.
 */
export function contentBytesOf(frame: Buffer): number | null {
  const descriptor = frame[DESCRIPTOR_AT] ?? 0;
  const isSingleSegment = (descriptor & IS_SINGLE_SEGMENT) !== 0;
  const windowBytes = isSingleSegment ? 0 : 1;
  const at = DESCRIPTOR_AT + 1 + windowBytes + (DICTIONARY_BYTES[descriptor & 3] as number);
  const sizeForm = descriptor >> 6;
  if (at + 4 > frame.length) return null;
  if (sizeForm === 0) return isSingleSegment ? frame.readUInt8(at) : null;
  if (sizeForm === 1) return frame.readUInt16LE(at) + TWO_BYTES_FROM;
  return sizeForm === 2 ? frame.readUInt32LE(at) : null;
}
