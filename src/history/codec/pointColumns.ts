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
  const way = lazyWay(() =>
    [points.recordedAtMs, points.lats, points.lngs].map((each) => each.subarray(0, count)),
  );
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

function lazyWay(columns: () => readonly Float64Array[]): () => Way {
  let way: Way | null = null;
  return () => {
    const [timesMs, lats, lngs] = columns() as [Float64Array, Float64Array, Float64Array];
    way ??= new Way(timesMs, lats, lngs);
    return way;
  };
}

function predictionOf(along: ColumnForm['along'], way: () => Way): Prediction | null {
  if (along === null) return null;
  return { along: (part) => way()[along](part), cycle: along === 'headings' ? 360 : null };
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

/** The columns of points that were packed, each read when it is first asked for. */
export class PackedColumns {
  readonly count: number;
  readonly #bytes = new Map<ColumnName, Uint8Array>();
  readonly #read = new Map<ColumnName, Float64Array>();
  readonly #way = lazyWay(() => (['recordedAtMs', 'lats', 'lngs'] as const).map((name) => this.column(name)));

  /** Throws RangeError where the bytes are damaged. */
  constructor(bytes: Uint8Array) {
    const reader = new VarintReader(bytes);
    this.count = reader.number();
    // Points that were packed before a column was added do not have it.
    const columns = reader.number();
    for (const name of COLUMN_NAMES.slice(0, columns)) this.#bytes.set(name, reader.take(reader.number()));
    if (!reader.isAtEnd) throw new RangeError('there are more columns than are known');
  }

  /** All values of a column. They are kept, and not to be changed. Throws RangeError. */
  column(name: ColumnName): Float64Array {
    let values = this.#read.get(name);
    if (values === undefined) {
      values = this.#readColumn(name, COLUMNS[name]);
      this.#read.set(name, values);
    }
    return values;
  }

  /** Those of these names; the others are empty. */
  columns(names: readonly ColumnName[] = COLUMN_NAMES): PointColumns {
    const columns = COLUMN_NAMES.map((name) => [name, names.includes(name) ? this.column(name) : EMPTY]);
    return { count: this.count, ...(Object.fromEntries(columns) as Record<ColumnName, Float64Array>) };
  }

  #readColumn(name: ColumnName, { nullable, above, along }: ColumnForm): Float64Array {
    const { count } = this;
    const bytes = this.#bytes.get(name);
    if (bytes === undefined) {
      invariant(nullable, 'a column that was added later may be missing');
      return new Float64Array(count).fill(Number.NaN);
    }
    const values = new Float64Array(count);
    const reader = new VarintReader(bytes);
    if (nullable) readNullable(reader, values);
    else if (count > 0) readNumbers(reader, values, count, predictionOf(along, this.#way));
    if (!reader.isAtEnd) throw new RangeError('a column is longer than its values');
    if (above !== null) {
      const base = this.column(above);
      for (let n = 0; n < count; n++) values[n] = (values[n] as number) + (base[n] as number);
    }
    return values;
  }
}

function readNullable(reader: VarintReader, values: Float64Array): void {
  const runs = Array.from({ length: Math.min(reader.number(), values.length) }, () => reader.number());
  let there = values.length;
  let covered = 0;
  for (const [n, run] of runs.entries()) {
    covered += run;
    if (n % 2 === 1) there -= run;
  }
  // The last run ends with the column.
  if (runs.length % 2 === 1) there -= values.length - covered;
  if (covered > values.length || there < 0) throw new RangeError('a column has more values than points');
  if (there > 0) readNumbers(reader, values, there, null);
  if (there === values.length) return;
  runs.push(values.length - covered);
  let from = there;
  let to = values.length;
  for (let n = runs.length - 1; n >= 0; n--) {
    const run = runs[n] as number;
    to -= run;
    if (n % 2 === 1) values.fill(Number.NaN, to, to + run);
    else {
      from -= run;
      values.copyWithin(to, from, from + run);
    }
  }
}
