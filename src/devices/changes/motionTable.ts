import type { Motion } from '../motion.ts';

const GROWTH = 1.25;
const IGNITIONS = [null, false, true] as const;

/** Heading, ignition and revision of devices by slot, in 13 bytes each. The transaction is kept by ChangeOrder. */
export class MotionTable {
  #headings = new Float64Array(0);
  #revisions = new Uint32Array(0);
  #ignitions = new Uint8Array(0);

  put(slot: number, { headingDeg, ignition, revision }: Omit<Motion, 'xid'>): void {
    this.#makeRoom(slot);
    this.#headings[slot] = headingDeg;
    this.#revisions[slot] = revision;
    this.#ignitions[slot] = IGNITIONS.indexOf(ignition);
  }

  headingDeg(slot: number): number {
    return this.#headings[slot] as number;
  }

  ignition(slot: number): boolean | null {
    return IGNITIONS[this.#ignitions[slot] as number] ?? null;
  }

  revision(slot: number): number {
    return this.#revisions[slot] as number;
  }

  #makeRoom(slot: number): void {
    const { length } = this.#headings;
    if (slot < length) return;
    const room = Math.max(slot + 1, 16, Math.ceil(length * GROWTH));
    const headings = new Float64Array(room);
    const revisions = new Uint32Array(room);
    const ignitions = new Uint8Array(room);
    headings.set(this.#headings);
    revisions.set(this.#revisions);
    ignitions.set(this.#ignitions);
    this.#headings = headings;
    this.#revisions = revisions;
    this.#ignitions = ignitions;
  }
}
