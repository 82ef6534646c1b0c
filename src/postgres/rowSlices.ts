/** Their values are written as text at once, which takes a millisecond or two. */
const ROWS_PER_STATEMENT = 2_000;

/** The rows of a large transaction, as many at a time as one statement carries. */
export function* rowSlices<Row>(rows: readonly Row[]): Generator<readonly Row[], void, undefined> {
  if (rows.length <= ROWS_PER_STATEMENT) {
    if (rows.length > 0) yield rows;
    return;
  }
  for (let from = 0; from < rows.length; from += ROWS_PER_STATEMENT)
    yield rows.slice(from, from + ROWS_PER_STATEMENT);
}
