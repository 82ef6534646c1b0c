import { type VarintReader, type VarintWriter, varintLength } from '../../lib/varints.ts';

/**
 * A column of numbers as bytes, given back bit for bit. If each value is an integer times a power of ten (the same for
 * all, found by trying), the column is the differences of these integers as varints. Otherwise it is the numbers
 * themselves, 8 bytes each.
 *
 * First byte: the exponent of ten and how often differences were taken, or RAW.
 */
const RAW = 0xff;
/** Times are often whole seconds: thousands of milliseconds. */
const EXPONENT_MIN = -3;
const EXPONENT_MAX = 12;
/** Values, differences, or differences of differences. */
const ORDERS = 3;
/** Differences of differences of integers up to here are below 2^52 in size. */
const INTEGER_MAX = 2 ** 50;
const POWERS = Array.from({ length: EXPONENT_MAX + 1 }, (_, exponent) => 10 ** exponent);

/** Writes the first `count` values. */
export function writeNumbers(writer: VarintWriter, values: Float64Array, count: number): void {
  const exponent = exponentOf(values, count);
  const integers = exponent === null ? null : integersOf(values, count, exponent);
  if (exponent === null || integers === null) {
    writer.byte(RAW);
    writer.append(planesOf(values, count));
    return;
  }
  const order = shortestOrder(integers);
  for (let taken = 0; taken < order; taken++) takeDifferences(integers, taken);
  writer.byte((exponent - EXPONENT_MIN) * ORDERS + order);
  writer.zigzags(integers, count);
}

/** Reads `count` values into the first places of `values`. Throws RangeError where the bytes are damaged. */
export function readNumbers(reader: VarintReader, values: Float64Array, count: number): void {
  const kind = reader.byte();
  if (kind === RAW) {
    readPlanes(reader.take(count * 8), values, count);
    return;
  }
  const exponent = Math.floor(kind / ORDERS) + EXPONENT_MIN;
  if (exponent > EXPONENT_MAX) throw new RangeError('a column has an unknown exponent');
  reader.zigzags(values, count);
  const power = POWERS[Math.abs(exponent)] as number;
  restore(values, count, kind % ORDERS, exponent < 0 ? power : 1, exponent > 0 ? power : 1);
}

/** The lowest exponent that may be exact for all values; null: there is none. */
function exponentOf(values: Float64Array, count: number): number | null {
  let exponent = EXPONENT_MIN;
  for (let n = 0; n < count; n++) {
    while (!isExact(values[n] as number, exponent)) if (++exponent > EXPONENT_MAX) return null;
  }
  return exponent;
}

function isExact(value: number, exponent: number): boolean {
  const power = POWERS[Math.abs(exponent)] as number;
  const integer = Math.round(exponent < 0 ? value / power : value * power);
  return comesBack(value, integer, exponent < 0 ? integer * power : integer / power);
}

/** Of −0, NaN and the infinities none does: their bits would not come back. */
function comesBack(value: number, integer: number, back: number): boolean {
  return back === value && Math.abs(integer) <= INTEGER_MAX && (value !== 0 || !Object.is(value, -0));
}

/** Null: the exponent is not exact for all of them after all. */
function integersOf(values: Float64Array, count: number, exponent: number): Float64Array | null {
  const power = POWERS[Math.abs(exponent)] as number;
  const isDivided = exponent < 0;
  const integers = new Float64Array(count);
  for (let n = 0; n < count; n++) {
    const value = values[n] as number;
    const integer = Math.round(isDivided ? value / power : value * power);
    if (!comesBack(value, integer, isDivided ? integer * power : integer / power)) return null;
    integers[n] = integer;
  }
  return integers;
}

/** How often to take differences so that the varints are shortest. */
function shortestOrder(integers: Float64Array): number {
  const lengths = [0, 0, 0];
  let before = 0;
  let differenceBefore = 0;
  for (const integer of integers) {
    const difference = integer - before;
    lengths[0]! += varintLength(2 * Math.abs(integer));
    lengths[1]! += varintLength(2 * Math.abs(difference));
    lengths[2]! += varintLength(2 * Math.abs(difference - differenceBefore));
    before = integer;
    differenceBefore = difference;
  }
  return lengths.indexOf(Math.min(...lengths));
}

/** Replaces all integers after the first `from + 1` by how much they are above the one before. */
function takeDifferences(integers: Float64Array, from: number): void {
  for (let n = integers.length - 1; n > from; n--)
    integers[n] = (integers[n] as number) - (integers[n - 1] as number);
}

/**
 * Makes values of differences in one pass, in which the sums do not wait for each other. A division is rounded correctly, so
 * it gives the double that is nearest to the decimal number.
 */
function restore(values: Float64Array, count: number, order: number, factor: number, divisor: number): void {
  const first = count > 0 ? (values[0] as number) : 0;
  let value = order === 0 ? 0 : first;
  let difference = 0;
  if (count > 0) values[0] = (first * factor) / divisor;
  for (let n = 1; n < count; n++) {
    const read = values[n] as number;
    difference = order === 2 ? difference + read : read;
    value = order === 0 ? read : value + difference;
    values[n] = (value * factor) / divisor;
  }
}

/** First the lowest byte of each number, then the next: neighbours are alike in their high bytes, which compresses well. */
function planesOf(values: Float64Array, count: number): Uint8Array {
  const view = new DataView(new ArrayBuffer(8));
  const planes = new Uint8Array(count * 8);
  for (let n = 0; n < count; n++) {
    view.setFloat64(0, values[n] as number, true);
    for (let plane = 0; plane < 8; plane++) planes[plane * count + n] = view.getUint8(plane);
  }
  return planes;
}

function readPlanes(planes: Uint8Array, values: Float64Array, count: number): void {
  const view = new DataView(new ArrayBuffer(8));
  for (let n = 0; n < count; n++) {
    for (let plane = 0; plane < 8; plane++) view.setUint8(plane, planes[plane * count + n] as number);
    values[n] = view.getFloat64(0, true);
  }
}
