/** Rows that are told as one: few calls where many have changed, and few bytes where few have. */
export const BLOCK_ROWS = 256;

/** Which rows of a table have changed, in blocks. */
export class DirtyBlocks {
  readonly #blocks = new Set<number>();

  add(row: number): void {
    this.#blocks.add(Math.floor(row / BLOCK_ROWS));
  }

  /** Gives each run of changed rows once, and forgets them. */
  take(rows: number, give: (from: number, to: number) => void): void {
    const blocks = Int32Array.from(this.#blocks).sort();
    this.#blocks.clear();
    for (let index = 0; index < blocks.length; index++) {
      const first = blocks[index] as number;
      while (blocks[index + 1] === (blocks[index] as number) + 1) index++;
      give(first * BLOCK_ROWS, Math.min(rows, ((blocks[index] as number) + 1) * BLOCK_ROWS));
    }
  }

  clear(): void {
    this.#blocks.clear();
  }
}
