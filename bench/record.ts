/** What RESULTS.md begins with. */
const HEAD = `# Results

Written by \`npm run bench -- --record\`, newest first. Every record carries its own floors: figures of different
records are compared by their ratio to these, never as they stand.
`;

/** The text of RESULTS.md with one more record; earlier ones stay as they are. */
export function addRecord(text: string | null, record: string): string {
  const earlier = text?.startsWith(HEAD) ? text.slice(HEAD.length) : (text ?? '');
  return `${HEAD}\n${record.trim()}\n${earlier === '' ? '' : `\n${earlier.trim()}\n`}`;
}
