import { CsvError, parse } from 'csv-parse/sync';
import { fail, ok, type Result } from '../../lib/result.ts';
import type { TextLine } from '../textLines.ts';

/** One record of a CSV text (RFC 4180), or why there is none at this line. */
export interface CsvRecord {
  /** The physical line on which it begins. */
  readonly line: number;
  readonly cells: Result<readonly string[], string>;
}

/** A quote that is not closed within this many lines is taken for a stray one: only its own line is lost. */
const RECORD_MAX_LINES = 20;

/**
 * Reads records from lines as they come. A broken record costs its own line and none of the lines after it, so the
 * parser is given a few lines at a time and starts again behind an error. Blank lines are skipped.
 */
export class CsvRecords {
  #waiting: TextLine[] = [];

  /** The records that these lines complete; a record whose quote is open waits for more. */
  push(lines: readonly TextLine[]): CsvRecord[] {
    return this.#read([...this.#waiting, ...lines], false);
  }

  /** The records that are still waiting when there are no more lines. */
  end(): CsvRecord[] {
    return this.#read(this.#waiting, true);
  }

  #read(lines: readonly TextLine[], isEnd: boolean): CsvRecord[] {
    const records: CsvRecord[] = [];
    let at = 0;
    while (at < lines.length) {
      const block = readBlock(lines.slice(at, at + RECORD_MAX_LINES));
      records.push(...block.records);
      at += block.used;
      const first = lines[at];
      if (block.error === null || first === undefined) continue;
      const mayBeCompleted = block.error === OPEN && !isEnd && lines.length - at < RECORD_MAX_LINES;
      if (mayBeCompleted) break;
      if (block.used > 0) continue; // the error may be one only because the block ends
      records.push({ line: first.number, cells: fail(block.error) });
      at++;
    }
    this.#waiting = lines.slice(at);
    return records;
  }
}

interface Block {
  readonly records: CsvRecord[];
  /** How many lines they take. */
  readonly used: number;
  /** Why the record behind them cannot be read. */
  readonly error: string | null;
}

const OPEN = 'a quote is opened and never closed';
const STRAY = 'a quote stands in the middle of a value, or text follows its end';

function readBlock(lines: readonly TextLine[]): Block {
  if (lines[0]?.text === null) return { records: [], used: 0, error: 'the line is too long' };
  const tooLongAt = lines.findIndex(({ text }) => text === null);
  const readable = tooLongAt < 0 ? lines : lines.slice(0, tooLongAt);
  const records: CsvRecord[] = [];
  let used = 0;
  const take = (cells: string[]): null => {
    const isBlank = cells.length === 1 && cells[0]?.trim() === '';
    if (!isBlank) records.push({ line: readable[used]?.number ?? 0, cells: ok(cells) });
    used += cells.join('').split('\n').length;
    return null;
  };
  try {
    const text = readable.map((line) => `${line.text}\n`).join('');
    parse(text, { record_delimiter: '\n', relax_column_count: true, on_record: take });
    return { records, used, error: null };
  } catch (error) {
    if (!(error instanceof CsvError)) throw error;
    return { records, used, error: error.code === 'CSV_QUOTE_NOT_CLOSED' ? OPEN : STRAY };
  }
}
