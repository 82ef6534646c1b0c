import { open } from 'node:fs/promises';
import { hasCode } from '../lib/hasCode.ts';
import { fail, ok, type Result } from '../lib/result.ts';

/** One physical line of a text, without its end. `text` is null when the line is too long to be read. */
export interface TextLine {
  /** Counts from 1. */
  readonly number: number;
  readonly text: string | null;
}

const LINE_MAX_CHARS = 64 * 1024;

/**
 * The lines of a UTF-8 text as they arrive, some at a time. LF and CRLF end a line; a byte order mark is dropped;
 * bytes that are no UTF-8 become U+FFFD. Holds no more than one line and one chunk.
 */
export async function* readLines(source: AsyncIterable<Uint8Array>): AsyncGenerator<TextLine[]> {
  const decoder = new TextDecoder();
  let rest = '';
  let skipping = false;
  let number = 0;
  const take = (text: string): TextLine => {
    number++;
    const tooLong = skipping || text.length > LINE_MAX_CHARS;
    skipping = false;
    return { number, text: tooLong ? null : text.endsWith('\r') ? text.slice(0, -1) : text };
  };
  for await (const chunk of source) {
    const parts = (rest + decoder.decode(chunk, { stream: true })).split('\n');
    rest = parts.pop() ?? '';
    yield parts.map(take);
    if (rest.length > LINE_MAX_CHARS) {
      skipping = true;
      rest = '';
    }
  }
  rest += decoder.decode();
  if (rest !== '' || skipping) yield [take(rest)];
}

/** The bytes of a file that an operator names; the error is a sentence. */
export async function openFile(path: string): Promise<Result<AsyncIterable<Uint8Array>, string>> {
  try {
    const file = await open(path);
    if (!(await file.stat()).isDirectory()) return ok(file.createReadStream());
    await file.close();
    return fail(`${path} is a folder`);
  } catch (error) {
    if (!hasCode(error, 'ENOENT', 'ENOTDIR', 'EACCES', 'EPERM')) throw error;
    return fail(hasCode(error, 'ENOENT', 'ENOTDIR') ? `there is no file ${path}` : `${path} may not be read`);
  }
}
