interface Line<T> {
  readonly items: T[];
  /** Items before this one are taken. They are removed from the array now and then, together. */
  next: number;
}

/** Taken items that stay in the array at most, so that taking one costs the same however many wait. */
const TAKEN_MAX = 1_024;

/** A queue for each key. The keys take turns, so a key with a hundred thousand items delays another by one at a time. */
export class FairQueue<Key, T> {
  /** In the order of their turns. */
  readonly #lines = new Map<Key, Line<T>>();

  push(key: Key, item: T): void {
    const line = this.#lines.get(key);
    if (line === undefined) this.#lines.set(key, { items: [item], next: 0 });
    else line.items.push(item);
  }

  /** The item whose turn it is, without taking it. */
  peek(): T | undefined {
    for (const line of this.#lines.values()) return line.items[line.next];
    return undefined;
  }

  /** Takes the item whose turn it is. Its key goes to the end. */
  take(): T | undefined {
    for (const [key, line] of this.#lines) {
      const item = line.items[line.next++] as T;
      const isEmpty = line.next === line.items.length;
      if (line.next === TAKEN_MAX) {
        line.items.splice(0, line.next);
        line.next = 0;
      }
      if (isEmpty || this.#lines.size > 1) this.#lines.delete(key);
      if (!isEmpty) this.#lines.set(key, line);
      return item;
    }
    return undefined;
  }
}
