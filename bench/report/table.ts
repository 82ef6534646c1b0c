/**
 * A table as Markdown, which is also readable on a terminal. The first `left` columns are aligned left, the others
 * right.
 */
export function formatTable(head: readonly string[], rows: readonly (readonly string[])[], left = 1): string {
  const widths = head.map((title, column) =>
    Math.max(3, title.length, ...rows.map((cells) => cells[column]?.length ?? 0)),
  );
  const pad = (text: string, column: number) => {
    const width = widths[column] ?? 0;
    return column < left ? text.padEnd(width) : text.padStart(width);
  };
  const line = (cells: readonly string[]) => `| ${head.map((_, n) => pad(cells[n] ?? '', n)).join(' | ')} |`;
  const rule = widths.map((width, n) => (n < left ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`));
  return [line(head), line(rule), ...rows.map(line)].join('\n');
}
