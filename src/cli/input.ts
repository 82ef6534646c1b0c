import { open } from 'node:fs/promises';
import { hasCode } from '../lib/errors.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import { systemClock } from '../lib/time.ts';
import { type CommandContext, operand } from './command.ts';
import { parsePassword } from './optionParsers.ts';

/** One physical line of a text, without its end. `text` is null when the line is too long to be read. */
export interface TextLine {
  /** Counts from 1. */
  readonly number: number;
  readonly text: string | null;
}

const LINE_MAX_CHARS = 64 * 1024;

/**
 * The lines of a UTF-8 text as they arrive, some at a time. LF and CRLF end a line; a byte order mark is dropped;
 * bytes that are not UTF-8 become U+FFFD. Holds no more than one line and one chunk.
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

/** The operand of commands that read a file: see openFile. */
export const FILE = operand('FILE', 'the file; - reads stdin', (text) =>
  text === '' ? fail('is empty') : ok(text),
);

/** The bytes of a file that an operator names; the error is a sentence. */
export async function openFile(
  path: string,
  stdin: AsyncIterable<Uint8Array>,
): Promise<Result<AsyncIterable<Uint8Array>, string>> {
  if (path === '-') return ok(stdin);
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

const EXIT_INTERRUPTED = 130;
/** npm passes Ctrl-C on to a process to which the terminal has already sent it. */
const SAME_INTERRUPTION_MS = 500;

/** Aborted by the first Ctrl-C (or SIGTERM), which calls `onFirst`; a second one ends the process. */
export function interruption(onFirst: () => void): AbortSignal {
  const controller = new AbortController();
  let firstMs = 0;
  const interrupt = () => {
    if (controller.signal.aborted) {
      if (systemClock() - firstMs > SAME_INTERRUPTION_MS) process.exit(EXIT_INTERRUPTED);
      return;
    }
    firstMs = systemClock();
    onFirst();
    controller.abort();
  };
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  return controller.signal;
}

/**
 * The password of an option. `-` asks for it twice in a terminal, which does not show it; elsewhere it is the first line of
 * stdin. On the command line itself others could see it in the list of processes, and the shell keeps it in its history.
 */
export async function readPassword(
  context: CommandContext,
  given: string | undefined,
): Promise<Result<string | undefined, string>> {
  if (given !== ASK) return ok(given);
  const text =
    context.askSecret === null ? await firstLine(context.stdin) : await askTwice(context.askSecret);
  if (text === null) return fail('the two passwords differ; nothing was changed');
  const password = parsePassword(text);
  return password.ok ? password : fail(`the password ${password.error}`);
}

const ASK = '-';
/** For the help of an option. */
export const ASKS_PASSWORD = '- asks for it; where stdin is no terminal, it is the first line there';

async function askTwice(ask: NonNullable<CommandContext['askSecret']>): Promise<string | null> {
  const text = await ask('Password: ');
  return text === (await ask('Again: ')) ? text : null;
}

/** Empty when there is none, or when it is too long for any password. */
async function firstLine(stdin: AsyncIterable<Uint8Array>): Promise<string> {
  for await (const lines of readLines(stdin)) {
    const [first] = lines;
    if (first !== undefined) return first.text ?? '';
  }
  return '';
}
