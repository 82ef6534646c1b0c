/** Records begin at multiples of this many bytes. */
const UNIT_BYTES = 8;
const UNIT_BITS = 17;
/** A page is a megabyte; a text that is longer has one of its own. */
const PAGE_UNITS = 2 ** UNIT_BITS;
/** Before each text: how many bytes it has, and in the highest bit whether they are UTF-8 and not Latin-1. */
const HEADER_BYTES = 4;
const IS_UTF8 = 0x8000_0000;

/**
 * Many short well-formed texts as bytes in a few large buffers, where each would take 24 bytes more as a string, and a reference to it
 * that the garbage collector follows. A text is known by a number above 0. What is freed is taken again by texts of about
 * the same length.
 */
export class TextArena {
  /** Texts are known by the number of their page, from 1 on, times PAGE_UNITS, plus their first unit in it. */
  readonly #pages: (Buffer | undefined)[] = [undefined];
  readonly #freePages: number[] = [];
  /** By units: records that were freed. */
  readonly #free = new Map<number, number[]>();
  /** The page that is being filled, and the next unit in it. */
  #page = 0;
  #next = PAGE_UNITS;

  /** The bytes of all pages. */
  get bytes(): number {
    return this.#pages.reduce((sum, page) => sum + (page?.length ?? 0), 0);
  }

  put(text: string): number {
    const isUtf8 = WIDE.test(text);
    const bytes = isUtf8 ? Buffer.byteLength(text) : text.length;
    const ref = this.#take(unitsOf(bytes));
    const page = this.#pages[ref >>> UNIT_BITS] as Buffer;
    const at = (ref & (PAGE_UNITS - 1)) * UNIT_BYTES;
    page.writeUInt32LE(isUtf8 ? (bytes | IS_UTF8) >>> 0 : bytes, at);
    page.write(text, at + HEADER_BYTES, isUtf8 ? 'utf8' : 'latin1');
    return ref;
  }

  text(ref: number): string {
    const page = this.#pages[ref >>> UNIT_BITS] as Buffer;
    const from = (ref & (PAGE_UNITS - 1)) * UNIT_BYTES + HEADER_BYTES;
    const header = headerAt(page, from);
    return header < IS_UTF8
      ? page.toString('latin1', from, from + header)
      : page.toString('utf8', from, from + header - IS_UTF8);
  }

  free(ref: number): void {
    const page = this.#pages[ref >>> UNIT_BITS] as Buffer;
    if (page.length > PAGE_UNITS * UNIT_BYTES) {
      this.#pages[ref >>> UNIT_BITS] = undefined;
      this.#freePages.push(ref >>> UNIT_BITS);
      return;
    }
    const header = headerAt(page, (ref & (PAGE_UNITS - 1)) * UNIT_BYTES + HEADER_BYTES);
    const units = unitsOf(header % IS_UTF8);
    const free = this.#free.get(units);
    if (free === undefined) this.#free.set(units, [ref]);
    else free.push(ref);
  }

  #take(units: number): number {
    if (units > PAGE_UNITS) return this.#open(units) * PAGE_UNITS;
    const freed = this.#free.get(units)?.pop();
    if (freed !== undefined) return freed;
    if (this.#next + units > PAGE_UNITS) {
      this.#page = this.#open(PAGE_UNITS);
      this.#next = 0;
    }
    const ref = this.#page * PAGE_UNITS + this.#next;
    this.#next += units;
    return ref;
  }

  #open(units: number): number {
    const number = this.#freePages.pop() ?? this.#pages.length;
    this.#pages[number] = Buffer.allocUnsafeSlow(units * UNIT_BYTES);
    return number;
  }
}

const WIDE = /[^\0-\xff]/;

function unitsOf(textBytes: number): number {
  return Math.ceil((HEADER_BYTES + textBytes) / UNIT_BYTES);
}

function headerAt(page: Buffer, textAt: number): number {
  return page.readUInt32LE(textAt - HEADER_BYTES);
}
