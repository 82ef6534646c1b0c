/** Beyond that, and as many as are sorted, all are sorted anew. */
const CHANGED_MAX = 1_000;

/** Things in an order. They are sorted when somebody looks, and then only those that have changed since. */
export class InOrder<T> {
  readonly #compare: (a: T, b: T) => number;
  /** Null: nobody has looked, or too much has changed. */
  #sorted: readonly T[] | null = null;
  /** Not in `sorted` yet. */
  readonly #added = new Set<T>();
  /** Still in `sorted`, at a place that is not theirs. */
  readonly #gone = new Set<T>();

  constructor(compare: (a: T, b: T) => number) {
    this.#compare = compare;
  }

  add(one: T): void {
    if (this.#sorted === null) return;
    this.#added.add(one);
    this.#bound(this.#sorted.length);
  }

  remove(one: T): void {
    if (this.#sorted === null) return;
    this.#added.delete(one);
    this.#gone.add(one);
    this.#bound(this.#sorted.length);
  }

  /** It has another place than before. */
  move(one: T): void {
    this.remove(one);
    this.add(one);
  }

  /** All of them; the same list while none comes, goes or moves. */
  sorted(all: Iterable<T>): readonly T[] {
    if (this.#sorted !== null && this.#added.size + this.#gone.size === 0) return this.#sorted;
    this.#sorted =
      this.#sorted === null
        ? [...all].sort(this.#compare)
        : merged(
            this.#sorted.filter((one) => !this.#gone.has(one)),
            [...this.#added].sort(this.#compare),
            this.#compare,
          );
    this.#added.clear();
    this.#gone.clear();
    return this.#sorted;
  }

  #bound(count: number): void {
    if (this.#added.size + this.#gone.size <= Math.max(CHANGED_MAX, count)) return;
    this.#sorted = null;
    this.#added.clear();
    this.#gone.clear();
  }
}

/** Both are in order. The places of the few are sought in the many: comparing is what takes time. */
function merged<T>(many: readonly T[], few: readonly T[], compare: (a: T, b: T) => number): readonly T[] {
  const all: T[] = [];
  let from = 0;
  for (const one of few) {
    const to = placeOf(one, many, from, compare);
    for (; from < to; from++) all.push(many[from] as T);
    all.push(one);
  }
  for (; from < many.length; from++) all.push(many[from] as T);
  return all;
}

function placeOf<T>(one: T, sorted: readonly T[], from: number, compare: (a: T, b: T) => number): number {
  let low = from;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (compare(sorted[middle] as T, one) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}
