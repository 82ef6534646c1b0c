import type { Span } from '../traces/span.ts';
import type { Fix, FixOutcome } from './fix.ts';

/** Points that were sent together and are answered together, however many transactions store them. */
export interface PointRequest {
  readonly fixes: readonly Fix[];
  /** One for each point, in order; null: not stored yet. */
  readonly outcomes: (FixOutcome | null)[];
  /** By performance.now(). */
  readonly arrivedAtMs: number;
  readonly resolve: (outcomes: FixOutcome[]) => void;
  readonly reject: (error: unknown) => void;
  /** Null: the request is not traced. */
  readonly span: Span | null;
  /** How many of its parts are not stored yet. */
  openParts: number;
  /** True once it was answered with an error: its remaining points need not be stored. */
  isRejected: boolean;
  /** True when it has points of several worlds: none of them is to wait for long for the others. */
  isShared: boolean;
}

/** The points of one device in one request. The parts of one device form a queue. */
export interface Part {
  readonly request: PointRequest;
  readonly imei: string;
  /** The world of the device; 0 for a device that memory does not know. */
  readonly worldId: number;
  /** Which points of the request belong to this part and are not stored yet. */
  indexes: number[];
  /** The part of the same device that must be stored before this one; null: there is none. */
  previous: Part | null;
  next: Part | null;
  /** True while a transaction works on it. */
  isTaken: boolean;
}

/** Answers a request with an error, unless it has one already. */
export function rejectRequest(request: PointRequest, error: unknown): void {
  if (!request.isRejected) request.reject(error);
  request.isRejected = true;
}

/** Points of all worlds that may wait. */
const POINTS_MAX = 200_000;

/**
 * The points that wait for a transaction. Those of one device stay in the order in which they arrived, and wait for no
 * other device. Worlds take turns. A world may have no more points waiting than there is room left, so one that sends
 * too much never uses up the room of the others.
 */
export class WaitingPoints {
  /** The last part of each device that has one, waiting or taken. */
  readonly #lastPart = new Map<string, Part>();
  readonly #ready = new FairQueue<number, Part>();
  readonly #countByWorld = new Map<number, number>();
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** False when the request finds no room; then nothing of it is added. */
  add(request: PointRequest, worldOf: (imei: string) => number): boolean {
    const parts = partsOf(request, worldOf);
    if (!this.#hasRoom(request.fixes.length, parts)) return false;
    request.openParts = parts.length;
    request.isShared = parts.some(({ worldId }) => worldId !== 0 && worldId !== parts[0]?.worldId);
    for (const part of parts) {
      this.#countPoints(part, 1);
      const last = this.#lastPart.get(part.imei);
      this.#lastPart.set(part.imei, part);
      if (last === undefined) this.#ready.push(part.worldId, part);
      else {
        last.next = part;
        part.previous = last;
      }
    }
    return true;
  }

  #hasRoom(points: number, parts: readonly Part[]): boolean {
    const room = POINTS_MAX - this.#count - points;
    if (room < 0) return false;
    const added = new Map<number, number>();
    for (const { worldId, indexes } of parts) {
      added.set(worldId, (added.get(worldId) ?? 0) + indexes.length);
    }
    return [...added].every(([worldId, own]) => (this.#countByWorld.get(worldId) ?? 0) + own <= room);
  }

  /**
   * Takes parts for one transaction: up to `maxPoints` points, or one part that is larger. The parts that follow in the
   * queue of the same device come along.
   */
  take(maxPoints: number): Part[] {
    const taken: Part[] = [];
    let points = 0;
    const fits = ({ indexes }: Part): boolean => taken.length === 0 || points + indexes.length <= maxPoints;
    for (let head = this.#peek(); head !== undefined && fits(head); head = this.#peek()) {
      this.#ready.take();
      for (
        let part: Part | null = head;
        part !== null && !part.request.isRejected && fits(part);
        part = part.next
      ) {
        points += part.indexes.length;
        taken.push(this.#taken(part));
      }
    }
    return taken;
  }

  /** Takes a blocked part. */
  takeBlocked(part: Part): Part {
    return this.#taken(part);
  }

  /** The next part that is ready; parts of rejected requests are dropped on the way. */
  #peek(): Part | undefined {
    const queue = this.#ready;
    for (let part = queue.peek(); part !== undefined; part = queue.peek()) {
      if (!part.request.isRejected) return part;
      queue.take();
      this.finish(this.#taken(part));
    }
    return undefined;
  }

  /** Ends a taken part, stored or rejected. The next part of its device becomes ready. */
  finish(part: Part): void {
    const { imei, next } = part;
    if (next === null) {
      this.#lastPart.delete(imei);
      return;
    }
    next.previous = null;
    if (!next.isTaken) this.#ready.push(next.worldId, next);
  }

  /**
   * Puts back a taken part that was not stored: 'ready' to be taken again, or 'blocked' until `unblock` or `takeBlocked`.
   * One with a previous part waits for that part instead.
   */
  putBack(part: Part, as: 'ready' | 'blocked'): void {
    part.isTaken = false;
    this.#countPoints(part, 1);
    if (part.previous !== null || as === 'blocked') return;
    this.#ready.push(part.worldId, part);
  }

  /** Lets a blocked part be taken again. */
  unblock(part: Part): void {
    this.#ready.push(part.worldId, part);
  }

  #taken(part: Part): Part {
    part.isTaken = true;
    this.#countPoints(part, -1);
    return part;
  }

  #countPoints({ worldId, indexes }: Part, sign: 1 | -1): void {
    const points = sign * indexes.length;
    this.#count += points;
    const own = (this.#countByWorld.get(worldId) ?? 0) + points;
    if (own === 0) this.#countByWorld.delete(worldId);
    else this.#countByWorld.set(worldId, own);
  }
}

function partsOf(request: PointRequest, worldOf: (imei: string) => number): Part[] {
  const parts = new Map<string, Part>();
  request.fixes.forEach(({ imei }, index) => {
    const known = parts.get(imei);
    if (known !== undefined) {
      known.indexes.push(index);
      return;
    }
    parts.set(imei, {
      request,
      imei,
      worldId: worldOf(imei),
      indexes: [index],
      previous: null,
      next: null,
      isTaken: false,
    });
  });
  return [...parts.values()];
}

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
