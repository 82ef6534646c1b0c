import type { Steps } from './workTurns.ts';

/** Below this a comparing sort is faster. */
const FEW = 2_048;
/** Where a digit of eleven bits begins in the lower 32 bits of a key, and in those above. */
const LOW_SHIFTS = [0, 11, 22];
const HIGH_SHIFTS = [0, 11];
const DIGITS = 2 ** 11;
const TWO_32 = 2 ** 32;
/** Some hundred microseconds of work. */
const KEYS_PER_STEP = 16_384;
/** The same: what a key is made of may be far away in memory. */
const READ_PER_STEP = 4_096;

/**
 * The numbers below `length` in ascending order of their keys, whole numbers from 0 to 2^53 - 1; at equal keys the lower one
 * comes first. Some 30 ns for each, beside its key. A long order is to be given to `release` after its use.
 */
export function* radixOrder(length: number, keyOf: (n: number) => number): Steps<PassingNumbers> {
  if (length < FEW) {
    const keys = Float64Array.from({ length }, (_, n) => keyOf(n));
    return Uint32Array.from(keys.keys()).sort((a, b) => (keys[a] as number) - (keys[b] as number) || a - b);
  }
  const columnBytes = Uint32Array.BYTES_PER_ELEMENT * length;
  const buffer = passingBuffer(6 * columnBytes);
  const columnAt = (n: number): Column => new Uint32Array(buffer, n * columnBytes, length);
  let from = [columnAt(0), columnAt(1), columnAt(2)];
  let to = [columnAt(3), columnAt(4), columnAt(5)];
  for (let at = 0; at < length; at += READ_PER_STEP) {
    read(keyOf, at, from);
    yield;
  }
  for (const [column, shifts] of [LOW_SHIFTS, HIGH_SHIFTS].entries()) {
    for (const shift of shifts) {
      const starts = new Uint32Array(DIGITS);
      for (let at = 0; at < length; at += KEYS_PER_STEP) {
        count(from[column] as Column, shift, at, starts);
        yield;
      }
      // All keys have the same digit here.
      if (starts.includes(length)) continue;
      for (let digit = 0, sum = 0; digit < DIGITS; digit++) {
        const own = starts[digit] as number;
        starts[digit] = sum;
        sum += own;
      }
      for (let at = 0; at < length; at += KEYS_PER_STEP) {
        place(from, to, column, shift, at, starts);
        yield;
      }
      [from, to] = [to, from];
    }
  }
  return from[ORDER] as Column;
}

/** Above 32 MB malloc asks the system for each piece, and gives it back when it is freed. */
const MAPPED_BYTES = 2 ** 25 + 2 ** 12;
/** Many small pieces are used again. */
const SMALL_BYTES = 2 ** 20;

/** Whole numbers from 0 to 2^32 - 1 that are given to `release` after their use. */
export type PassingNumbers = Uint32Array<ArrayBuffer>;

/**
 * Numbers of a large computation that the process does not keep afterwards; 0 at first. Smaller pieces of memory would stay
 * with malloc: after a start that was a tenth of all memory. What is not written to takes none.
 */
export function passingNumbers(length: number): PassingNumbers {
  return new Uint32Array(passingBuffer(Uint32Array.BYTES_PER_ELEMENT * length), 0, length);
}

function passingBuffer(bytes: number): ArrayBuffer {
  return new ArrayBuffer(bytes < SMALL_BYTES ? bytes : Math.max(bytes, MAPPED_BYTES));
}

/** Frees the memory behind them at once, and not when garbage is collected. They are empty afterwards. */
export function release({ buffer }: PassingNumbers): void {
  buffer.transfer(0);
}

type Column = PassingNumbers;
/** The columns: the lower 32 bits of the keys, those above, and the numbers that they are of. */
const ORDER = 2;

function read(keyOf: (n: number) => number, at: number, columns: readonly Column[]): void {
  const [low, high, order] = columns as [Column, Column, Column];
  const end = Math.min(at + READ_PER_STEP, order.length);
  for (let n = at; n < end; n++) {
    const key = keyOf(n);
    low[n] = key;
    high[n] = Math.floor(key / TWO_32);
    order[n] = n;
  }
}

function count(column: Column, shift: number, at: number, counts: Column): void {
  const end = Math.min(at + KEYS_PER_STEP, column.length);
  for (let n = at; n < end; n++) {
    const digit = ((column[n] as number) >>> shift) & (DIGITS - 1);
    counts[digit] = (counts[digit] as number) + 1;
  }
}

function place(
  from: readonly Column[],
  to: readonly Column[],
  column: number,
  shift: number,
  at: number,
  starts: Column,
): void {
  const [low, high, order] = from as [Column, Column, Column];
  const [toLow, toHigh, toOrder] = to as [Column, Column, Column];
  const digits = from[column] as Column;
  const end = Math.min(at + KEYS_PER_STEP, order.length);
  for (let n = at; n < end; n++) {
    const digit = ((digits[n] as number) >>> shift) & (DIGITS - 1);
    const start = starts[digit] as number;
    starts[digit] = start + 1;
    toLow[start] = low[n] as number;
    toHigh[start] = high[n] as number;
    toOrder[start] = order[n] as number;
  }
}
