/** A statement of a file, without the comments before it, and the line that it begins in. */
export interface FileStatement {
  readonly text: string;
  readonly line: number;
}

/** What ends a token of `splitStatements`, if that is not what it begins with. */
const ENDS: Readonly<Record<string, string>> = { '--': '\n', '/*': '*/' };
const BLANK = /^(?:\s+|--[^\n]*|\/\*.*?\*\/)/s;

/**
 * The statements of a file of SQL, in order. Not known here: a quote that a backslash hides (E'\''), a comment inside a
 * comment, and a body without quotes (begin atomic).
 */
export function splitStatements(file: string): FileStatement[] {
  const statements: FileStatement[] = [];
  let line = 1;
  let start = 0;
  const end = (at: number): void => {
    let rest = file.slice(start, at);
    for (let blank = BLANK.exec(rest); blank !== null; blank = BLANK.exec(rest)) {
      line += countLines(blank[0]);
      rest = rest.slice(blank[0].length);
    }
    if (rest !== '') statements.push({ text: rest.trimEnd(), line });
    line += countLines(rest);
    start = at + 1;
  };
  // A semicolon, or the beginning of what may hold one that ends no statement: a comment, a string, a name, a body.
  const token = /;|--|\/\*|'|"|\$(?:[a-z_]\w*)?\$/gi;
  for (let found = token.exec(file); found !== null; found = token.exec(file)) {
    const [text] = found;
    if (text === ';') {
      end(found.index);
      continue;
    }
    const close = ENDS[text] ?? text;
    const closedAt = file.indexOf(close, token.lastIndex);
    if (closedAt === -1) break;
    token.lastIndex = closedAt + close.length;
  }
  end(file.length);
  return statements;
}

function countLines(text: string): number {
  return text.split('\n').length - 1;
}
