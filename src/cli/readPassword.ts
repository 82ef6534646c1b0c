import { fail, ok, type Result } from '../lib/result.ts';
import type { CommandContext } from './command.ts';
import { parsePassword } from './optionParsers.ts';
import { readLines } from './textLines.ts';

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
