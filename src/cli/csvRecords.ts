import type { TextLine } from './textLines.ts';

/** One record of a CSV text (RFC 4180), or why there is none at this line. */
export interface CsvRecord {
  /** The physical line on which it begins. */
  readonly line: number;
  readonly cells: readonly string[] | null;
  /** Set when there are no cells. */
  readonly problem: string;
}

/** A quote that is not closed within so many lines is taken for a stray one: only its own line is lost. */
const RECORD_MAX_LINES = 20;

/**
 * Reads records from lines as they come. A broken record costs its own line, never what follows it. Lines that
 * hold nothing are passed over.
 */
export class CsvRecords {
  #waiting: TextLine[] = [];

  /** The records that these lines complete; a record whose quote is open waits for more. */
  push(lines: readonly TextLine[]): CsvRecord[] {
    return this.#read([...this.#waiting, ...lines], false);
  }

  /** What still waits when there are no more lines. */
  end(): CsvRecord[] {
    return this.#read(this.#waiting, true);
  }

  #read(lines: readonly TextLine[], isEnd: boolean): CsvRecord[] {
    const records: CsvRecord[] = [];
    let at = 0;
    while (at < lines.length) {
      const { record, used } = readRecord(lines, at);
      if (used === 0 && !isEnd && lines.length - at < RECORD_MAX_LINES) break;
      if (record !== null) records.push(record);
      at += Math.max(used, 1);
    }
    this.#waiting = lines.slice(at);
    return records;
  }
}

/** `used` 0: the record is not complete on these lines; `record` then says what to report if no more come. */
function readRecord(lines: readonly TextLine[], at: number): { record: CsvRecord | null; used: number } {
  const first = lines[at];
  if (first === undefined || first.text?.trim() === '') return { record: null, used: 1 };
  const bad = (problem: string, used: number) => ({
    record: { line: first.number, cells: null, problem },
    used,
  });
  let text = '';
  for (let used = 1; used <= RECORD_MAX_LINES; used++) {
    const line = lines[at + used - 1];
    if (line === undefined) break;
    if (line.text === null) return bad('the line is too long', 1);
    text += used === 1 ? line.text : `\n${line.text}`;
    const cells = splitCells(text);
    if (cells === 'stray') return bad('a quote stands in the middle of a value, or text follows its end', 1);
    if (cells !== 'open') return { record: { line: first.number, cells, problem: '' }, used };
  }
  return bad('a quote is opened and never closed', 0);
}

/** 'open' when the text ends inside quotes, 'stray' when a quote stands where none may. */
function splitCells(text: string): string[] | 'open' | 'stray' {
  if (!text.includes('"')) return text.split(',');
  const cells: string[] = [];
  const cell = /(?:"([^"]*(?:""[^"]*)*)"|([^",]*))(,|$)/y;
  while (cell.lastIndex <= text.length) {
    const start = cell.lastIndex;
    const match = cell.exec(text);
    if (match === null) return isOpen(text.slice(start)) ? 'open' : 'stray';
    cells.push(match[1]?.replaceAll('""', '"') ?? match[2] ?? '');
    if (match[3] === '') return cells;
  }
  return cells;
}

/** True when `rest` is a quoted value that is not closed yet. */
function isOpen(rest: string): boolean {
  return /^"[^"]*(?:""[^"]*)*$/.test(rest);
}
