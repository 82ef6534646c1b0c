import type RBush from 'rbush';
import type { IndexBox } from '../geo/measure.ts';
import { Pace, type Steps } from '../lib/workTurns.ts';

interface Revised {
  readonly id: number;
  readonly revision: number;
}

interface BoxOf<Area> extends IndexBox {
  readonly area: Area;
}

/** A branch of an R-tree, as RBush.toJSON shows it without a copy. */
interface Branch<Entry> extends IndexBox {
  readonly leaf: boolean;
  readonly children: readonly (Branch<Entry> | Entry)[];
}

/** With as many boxes a digest is worth keeping. */
const MANY = 64;
/** Digests kept of a world: a few kilobytes. */
const DIGESTS_MAX = 64;
/** Searches that a change of the tree ends. The next one is made in one piece. */
const INTERRUPTIONS_MAX = 4;

/**
 * Searches in steps for all boxes of a world that meet a box: there may be hundreds of thousands. RBush searches in one
 * piece only. After a change between two steps the search starts over, so its result is that of one moment.
 */
export class BoxSearch<Area extends Revised> {
  readonly #tree: RBush<BoxOf<Area>>;
  readonly #digests = new Map<string, RevisionDigest>();
  #changes = 0;

  constructor(tree: RBush<BoxOf<Area>>) {
    this.#tree = tree;
  }

  /** Must be called at every change of the tree. */
  changed(): void {
    this.#changes++;
    this.#digests.clear();
  }

  /** An area with several boxes may be there several times. */
  *inBox(box: IndexBox): Steps<Area[]> {
    return yield* this.#search(box, () => {
      const found: Area[] = [];
      return { take: (areas: readonly Area[]) => void found.push(...areas), result: () => found };
    });
  }

  /** Which revisions of which areas have boxes that meet the box. */
  *digest(box: IndexBox): Steps<RevisionDigest> {
    const name = `${box.minX} ${box.minY} ${box.maxX} ${box.maxY}`;
    const known = this.#digests.get(name);
    if (known !== undefined) return known;
    const digest = yield* this.#search(box, () => {
      let sum = NOTHING;
      const take = (areas: readonly Area[]) => {
        sum = sumOf(sum, digestOf(areas));
      };
      return { take, result: () => sum };
    });
    if (digest.count >= MANY) {
      if (this.#digests.size === DIGESTS_MAX) this.#digests.clear();
      this.#digests.set(name, digest);
    }
    return digest;
  }

  /** What `begin` makes of the areas, which it gets a leaf at a time. */
  *#search<Result>(
    box: IndexBox,
    begin: () => { take(areas: readonly Area[]): void; result(): Result },
  ): Steps<Result> {
    for (let interruptions = 0; ; interruptions++) {
      const { take, result } = begin();
      const pace = new Pace();
      const changes = this.#changes;
      const open: Branch<BoxOf<Area>>[] = [this.#tree.toJSON()];
      for (let branch = open.pop(); branch !== undefined; branch = open.pop()) {
        const meeting = branch.children.filter((child) => areMeeting(child, box));
        if (branch.leaf) take((meeting as BoxOf<Area>[]).map(({ area }) => area));
        else open.push(...(meeting as Branch<BoxOf<Area>>[]));
        if (interruptions >= INTERRUPTIONS_MAX || !pace.isDue()) continue;
        yield* pace.pause();
        if (changes !== this.#changes) break;
      }
      if (changes === this.#changes) return result();
    }
  }
}

function areMeeting(a: IndexBox, b: IndexBox): boolean {
  return a.minX <= b.maxX && a.maxX >= b.minX && a.minY <= b.maxY && a.maxY >= b.minY;
}

/** Which revisions of which areas there are, whatever their order: how many, and two sums over them. */
export interface RevisionDigest {
  readonly count: number;
  /** Whole numbers below 2^32. */
  readonly a: number;
  readonly b: number;
}

export const NOTHING: RevisionDigest = { count: 0, a: 0, b: 0 };

/** Equal for the same revisions; for others with a probability of 2^-64. */
function digestOf(areas: readonly Revised[]): RevisionDigest {
  let a = 0;
  let b = 0;
  for (const { id, revision } of areas) {
    a = (a + scattered(id, revision, SEED_A)) >>> 0;
    b = (b + scattered(id, revision, SEED_B)) >>> 0;
  }
  return { count: areas.length, a, b };
}

export function sumOf(one: RevisionDigest, other: RevisionDigest): RevisionDigest {
  return { count: one.count + other.count, a: (one.a + other.a) >>> 0, b: (one.b + other.b) >>> 0 };
}

const SEED_A = 0x9e3779b9;
const SEED_B = 0x7f4a7c15;
const TWO_32 = 2 ** 32;

/** Two numbers as one below 2^32, each bit of which depends on all of theirs. */
function scattered(id: number, revision: number, seed: number): number {
  const high = Math.imul((id / TWO_32) ^ seed, 0x165667b1) ^ Math.imul(revision / TWO_32, 0x27d4eb2f);
  return mixed(mixed(id ^ high) + revision) >>> 0;
}

/** The last step of MurmurHash3 (A. Appleby), which turns every 32-bit number into another one. */
function mixed(bits: number): number {
  let h = bits;
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return h ^ (h >>> 16);
}
