import { invariant } from '../../lib/errors.ts';
import { VarintReader, VarintWriter } from '../../lib/varints.ts';
import type { Steps } from '../../lib/workTurns.ts';
import { type Prediction, readNumbers, writeNumbers } from './numberColumn.ts';
import { Way } from './way.ts';

interface ColumnForm {
  /** A point without a value has NaN there. */
  readonly nullable: boolean;
  /** The column whose values are subtracted: what is left is smaller. */
  readonly above: ColumnName | null;
  /** What of the way to the neighbouring points predicts it. */
  readonly along: 'speedsKmh' | 'headings' | null;
}

const PLAIN: ColumnForm = { nullable: false, above: null, along: null };

/** The columns of a stored point in the order of their bytes. `lates`: 1 is true, 0 is false. */
const COLUMNS = {
  recordedAtMs: PLAIN,
  lats: PLAIN,
  lngs: PLAIN,
  altitudesM: PLAIN,
  speedsKmh: { nullable: false, above: null, along: 'speedsKmh' },
  headings: { nullable: false, above: null, along: 'headings' },
  satellites: PLAIN,
  odometersKm: { nullable: true, above: null, along: null },
  receivedAtMs: { nullable: true, above: 'recordedAtMs', along: null },
  lates: { nullable: true, above: null, along: null },
} as const;

export type ColumnName = keyof typeof COLUMNS;
const EMPTY = new Float64Array(0);
const FORMS = Object.entries(COLUMNS) as [ColumnName, ColumnForm][];
export const COLUMN_NAMES = FORMS.map(([name]) => name);

/** Points of one device, oldest first, column by column: the first `count` places of each. */
export type PointColumns = { readonly count: number } & Readonly<Record<ColumnName, Float64Array>>;

/** Places for `count` points, in the columns of these names. */
export function emptyColumns(count: number, names: readonly ColumnName[] = COLUMN_NAMES): PointColumns {
  const columns = Object.fromEntries(
    COLUMN_NAMES.map((name) => [name, names.includes(name) ? new Float64Array(count) : EMPTY]),
  );
  return { count, ...(columns as Record<ColumnName, Float64Array>) };
}

/** How many points all of these have. */
export function countOf(pieces: readonly PointColumns[]): number {
  return pieces.reduce((sum, { count }) => sum + count, 0);
}

/** The points from `start` on and before `end`, in the same memory. */
export function sliceColumns(points: PointColumns, start: number, end: number): PointColumns {
  const columns = COLUMN_NAMES.map((name) => [name, points[name].subarray(start, end)]);
  return { count: end - start, ...(Object.fromEntries(columns) as Record<ColumnName, Float64Array>) };
}

/** Points of both, by time, in the columns of these names. Of two with the same time that of `packed` stays: it came first. */
export function mergeColumns(
  packed: PointColumns,
  rows: PointColumns,
  names: readonly ColumnName[] = COLUMN_NAMES,
): PointColumns {
  if (rows.count === 0) return packed;
  if (packed.count === 0) return rows;
  const merged = emptyColumns(packed.count + rows.count, names);
  let count = 0;
  for (let p = 0, r = 0; p < packed.count || r < rows.count; count++) {
    const timeMs = p < packed.count ? (packed.recordedAtMs[p] as number) : Number.POSITIVE_INFINITY;
    const rowMs = r < rows.count ? (rows.recordedAtMs[r] as number) : Number.POSITIVE_INFINITY;
    const source = timeMs <= rowMs ? packed : rows;
    const at = timeMs <= rowMs ? p++ : r++;
    for (const name of names) merged[name][count] = source[name][at] as number;
    if (timeMs === rowMs) r++;
  }
  return sliceColumns(merged, 0, count);
}

/** How many of these times, in order, are not after `ms`. */
export function upTo(timesMs: Float64Array, ms: number): number {
  let low = 0;
  for (let high = timesMs.length; low < high; ) {
    const middle = (low + high) >>> 1;
    if ((timesMs[middle] as number) <= ms) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The columns as bytes, in steps of a part of a column. */
export function* writeColumns(points: PointColumns): Steps<Uint8Array> {
  const { count } = points;
  const writer = new VarintWriter(2 ** 16);
  writer.number(count);
  writer.number(FORMS.length);
  const way = lazyWay(count, (name) => points[name]);
  for (const [name, { nullable, above, along }] of FORMS) {
    const column = new VarintWriter(2 ** 16);
    let values = points[name].subarray(0, count);
    if (above !== null) values = values.map((value, n) => value - (points[above][n] as number));
    if (nullable) values = writeNulls(column, values);
    if (values.length > 0) yield* writeNumbers(column, values, values.length, predictionOf(along, way));
    writer.number(column.length);
    writer.append(column.bytes());
    yield;
  }
  return writer.bytes();
}

/** The way to, between and from the points of these places. It is computed when it is first asked for, and kept for one range. */
type WayOf = (from: number, to: number) => { readonly way: Way; readonly first: number };

/** `upTo` gives at least the first `end` values of a column. */
function lazyWay(
  count: number,
  upTo: (name: 'recordedAtMs' | 'lats' | 'lngs', end: number) => Float64Array,
): WayOf {
  let kept: { way: Way; first: number; end: number } | null = null;
  return (from, to) => {
    // The neighbours of the first and the last place say what is expected there.
    const first = Math.max(0, from - 1);
    const end = Math.min(count, to + 1);
    if (kept?.first !== first || kept.end !== end) {
      const part = (name: 'recordedAtMs' | 'lats' | 'lngs') => upTo(name, end).subarray(first, end);
      kept = { way: new Way(part('recordedAtMs'), part('lats'), part('lngs')), first, end };
    }
    return kept;
  };
}

function predictionOf(along: ColumnForm['along'], wayOf: WayOf): Prediction | null {
  if (along === null) return null;
  return {
    along: (part, from, to) => {
      const { way, first } = wayOf(from, to);
      return way[along](part).subarray(from - first, to - first);
    },
    cycle: along === 'headings' ? 360 : null,
  };
}

/** Writes how many values follow each other, are missing, follow again, and so on. Returns those that are there. */
function writeNulls(writer: VarintWriter, values: Float64Array): Float64Array<ArrayBuffer> {
  const present = new Float64Array(values.length);
  const runs: number[] = [];
  let at = 0;
  let isRunMissing = false;
  let run = 0;
  for (const value of values) {
    const isMissing = Number.isNaN(value);
    if (isMissing !== isRunMissing) {
      runs.push(run);
      run = 0;
      isRunMissing = isMissing;
    }
    run++;
    if (!isMissing) present[at++] = value;
  }
  writer.number(runs.length);
  for (const length of runs) writer.number(length);
  return present.subarray(0, at);
}

/** Memory for the numbers of one row of packed points after the other: who reads many frees none. */
export class ColumnRoom {
  #values = EMPTY;
  #taken = 0;

  /** What was taken before may be given again. */
  clear(): void {
    this.#taken = 0;
  }

  /** Memory for `count` numbers. It is not cleared. */
  take(count: number): Float64Array {
    if (this.#taken + count > this.#values.length) {
      this.#values = new Float64Array(Math.max(2 * this.#values.length, this.#taken + count));
      this.#taken = 0;
    }
    this.#taken += count;
    return this.#values.subarray(this.#taken - count, this.#taken);
  }
}

const newNumbers = (count: number): Float64Array => new Float64Array(count);

/** The columns of points that were packed, each read when it is asked for, and as far as it is. */
export class PackedColumns {
  readonly count: number;
  readonly #bytes = new Map<ColumnName, Uint8Array>();
  /** The first values of columns. */
  readonly #read = new Map<ColumnName, Float64Array>();
  readonly #wayOf: WayOf;
  readonly #room: (count: number) => Float64Array;

  /**
   * `room`: where the numbers go, in the place of those that were read into it before; null: each column has its own memory.
   * Throws RangeError where the bytes are damaged.
   */
  constructor(bytes: Uint8Array, room: ColumnRoom | null = null) {
    room?.clear();
    this.#room = room === null ? newNumbers : (count) => room.take(count);
    const reader = new VarintReader(bytes);
    this.count = reader.number();
    // Points that were packed before a column was added do not have it.
    const columns = reader.number();
    for (const name of COLUMN_NAMES.slice(0, columns)) this.#bytes.set(name, reader.take(reader.number()));
    if (!reader.isAtEnd) throw new RangeError('there are more columns than are known');
    this.#wayOf = lazyWay(this.count, (name, end) => this.#upTo(name, end));
  }

  /** All values of a column. They are kept, and not to be changed. Throws RangeError. */
  column(name: ColumnName): Float64Array {
    return this.#upTo(name, this.count);
  }

  /**
   * The points in a time, both ends included, or only the newest of them, in the columns of these names; the others are empty.
   * Throws RangeError.
   */
  within(
    { fromMs, toMs }: { readonly fromMs: number; readonly toMs: number },
    names: readonly ColumnName[],
    newest = this.count,
  ): PointColumns {
    const times = this.column('recordedAtMs');
    const from = upTo(times, fromMs - 1);
    const to = Math.max(from, upTo(times, toMs));
    return this.columns(names, Math.max(from, to - newest), to);
  }

  /** The points from `from` on and before `to`, in the columns of these names; the others are empty. Throws RangeError. */
  columns(names: readonly ColumnName[] = COLUMN_NAMES, from = 0, to = this.count): PointColumns {
    const columns = COLUMN_NAMES.map((name) => [
      name,
      names.includes(name) ? this.#part(name, from, to) : EMPTY,
    ]);
    return { count: to - from, ...(Object.fromEntries(columns) as Record<ColumnName, Float64Array>) };
  }

  #part(name: ColumnName, from: number, to: number): Float64Array {
    const isOnWay = name === 'lats' || name === 'lngs';
    // The way to the next point is needed as well.
    if (isOnWay) return this.#upTo(name, Math.min(this.count, to + 1)).subarray(from, to);
    const read = this.#read.get(name);
    return read !== undefined && read.length >= to
      ? read.subarray(from, to)
      : this.#readColumn(name, from, to);
  }

  /** The first `end` values of a column, or more. */
  #upTo(name: ColumnName, end: number): Float64Array {
    let values = this.#read.get(name);
    if (values === undefined || values.length < end) {
      values = this.#readColumn(name, 0, end);
      this.#read.set(name, values);
    }
    return values;
  }

  #readColumn(name: ColumnName, from: number, to: number): Float64Array {
    const { count } = this;
    const { nullable, above, along } = COLUMNS[name];
    const bytes = this.#bytes.get(name);
    if (bytes === undefined) {
      invariant(nullable, 'a column that was added later may be missing');
      return new Float64Array(to - from).fill(Number.NaN);
    }
    const reader = new VarintReader(bytes);
    let values: Float64Array = EMPTY;
    if (nullable) values = readNullable(reader, count).subarray(from, to);
    else if (count > 0)
      values = readNumbers(reader, count, from, to, predictionOf(along, this.#wayOf), this.#room);
    if (!reader.isAtEnd) throw new RangeError('a column is longer than its values');
    if (above !== null) {
      const base = this.column(above);
      for (let n = from; n < to; n++) values[n - from] = (values[n - from] as number) + (base[n] as number);
    }
    return values;
  }
}

function readNullable(reader: VarintReader, count: number): Float64Array {
  const runs = Array.from({ length: Math.min(reader.number(), count) }, () => reader.number());
  let there = count;
  let covered = 0;
  for (const [n, run] of runs.entries()) {
    covered += run;
    if (n % 2 === 1) there -= run;
  }
  // The last run ends with the column.
  if (runs.length % 2 === 1) there -= count - covered;
  if (covered > count || there < 0) throw new RangeError('a column has more values than points');
  const present = there > 0 ? readNumbers(reader, there, 0, there, null, newNumbers) : EMPTY;
  if (there === count) return present;
  const values = new Float64Array(count);
  values.set(present);
  runs.push(count - covered);
  let from = there;
  let to = count;
  for (let n = runs.length - 1; n >= 0; n--) {
    const run = runs[n] as number;
    to -= run;
    if (n % 2 === 1) values.fill(Number.NaN, to, to + run);
    else {
      from -= run;
      values.copyWithin(to, from, from + run);
    }
  }
  return values;
}
