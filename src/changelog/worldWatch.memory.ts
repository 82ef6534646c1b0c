/** What may be new in a world. */
export type Novelty = 'devices' | 'events';

/**
 * Notes in which of the followed worlds something is new. When nobody follows a world, that costs a look at the size of a
 * map.
 */
export class WorldWatch {
  /** How many follow a world. */
  readonly #followers = new Map<number, number>();
  readonly #touched: Readonly<Record<Novelty, Set<number>>> = { devices: new Set(), events: new Set() };

  /** From now on something new in this world is noted; to be ended by `unfollow`. */
  follow(worldId: number): void {
    this.#followers.set(worldId, (this.#followers.get(worldId) ?? 0) + 1);
  }

  unfollow(worldId: number): void {
    const count = this.#followers.get(worldId) ?? 0;
    if (count > 1) this.#followers.set(worldId, count - 1);
    else this.#followers.delete(worldId);
  }

  touch(novelty: Novelty, worldId: number): void {
    if (this.#followers.size > 0 && this.#followers.has(worldId)) this.#touched[novelty].add(worldId);
  }

  /** Everything may be new. */
  touchAll(): void {
    for (const worldId of this.#followers.keys()) {
      this.#touched.devices.add(worldId);
      this.#touched.events.add(worldId);
    }
  }

  /** What was noted since `clear`. */
  touched(novelty: Novelty): ReadonlySet<number> {
    return this.#touched[novelty];
  }

  clear(): void {
    this.#touched.devices.clear();
    this.#touched.events.clear();
  }
}
