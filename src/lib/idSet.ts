import { invariant } from './errors.ts';

/** Ids that share a page, a bit for each. */
const PAGE_IDS = 256;
const PAGE_WORDS = PAGE_IDS / 32;
/** The number of the page, plus 1 (0: the slot is empty), and its bits. */
const SLOT_INTS = 1 + PAGE_WORDS;
const FIRST_SLOTS = 4;

/**
 * Whole numbers from 0 to 2^40, such as ids. Some thousands of numbers that lie close together take less than a byte each,
 * and one that lies alone 96 at most. Memory is not given back when numbers are deleted.
 */
export class IdSet {
  /** A hash table of pages with linear probing. */
  #table = new Uint32Array(FIRST_SLOTS * SLOT_INTS);
  #slots = FIRST_SLOTS;
  #pages = 0;
  size = 0;

  get bytes(): number {
    return this.#table.byteLength;
  }

  has(id: number): boolean {
    const word = this.#slotOf(pageOf(id)) + wordOf(id);
    return ((this.#table[word] as number) & bitOf(id)) !== 0;
  }

  /** True when it was not there. */
  add(id: number): boolean {
    const page = pageOf(id);
    invariant(page >= 1 && page <= 0xffff_ffff, 'an id of a set is below 2^40');
    let slot = this.#slotOf(page);
    if (this.#table[slot] === 0) {
      if (4 * (this.#pages + 1) > 3 * this.#slots) {
        this.#grow();
        slot = this.#slotOf(page);
      }
      this.#table[slot] = page;
      this.#pages++;
    }
    const word = slot + wordOf(id);
    const bits = this.#table[word] as number;
    if ((bits & bitOf(id)) !== 0) return false;
    this.#table[word] = bits | bitOf(id);
    this.size++;
    return true;
  }

  /** True when it was there. */
  delete(id: number): boolean {
    const word = this.#slotOf(pageOf(id)) + wordOf(id);
    const bits = this.#table[word] as number;
    if ((bits & bitOf(id)) === 0) return false;
    this.#table[word] = bits & ~bitOf(id);
    this.size--;
    return true;
  }

  /** Where the slot of a page begins, or the empty one where it would be put. */
  #slotOf(page: number): number {
    const last = this.#slots - 1;
    for (let slot = Math.imul(page, 0x9e37_79b1) >>> 8; ; slot++) {
      const at = (slot & last) * SLOT_INTS;
      const found = this.#table[at];
      if (found === page || found === 0) return at;
    }
  }

  #grow(): void {
    const before = this.#table;
    this.#slots *= 2;
    this.#table = new Uint32Array(this.#slots * SLOT_INTS);
    for (let at = 0; at < before.length; at += SLOT_INTS) {
      const page = before[at] as number;
      if (page !== 0) this.#table.set(before.subarray(at, at + SLOT_INTS), this.#slotOf(page));
    }
  }
}

function pageOf(id: number): number {
  return Math.floor(id / PAGE_IDS) + 1;
}

function wordOf(id: number): number {
  return 1 + Math.floor((id % PAGE_IDS) / 32);
}

function bitOf(id: number): number {
  return 1 << (id % 32);
}
