import { FairQueue } from '../base/fairQueue.ts';
import type { Fix } from '../engine/fix.ts';
import type { FixOutcome } from './commitFixes.ts';

/** Points that were sent together and are answered together, however many transactions store them. */
export interface PointRequest {
  readonly fixes: readonly Fix[];
  /** One for each point, in order; null: not stored yet. */
  readonly outcomes: (FixOutcome | null)[];
  /** By performance.now(). */
  readonly arrivedAtMs: number;
  readonly resolve: (outcomes: FixOutcome[]) => void;
  readonly reject: (error: unknown) => void;
  /** Parts that are not stored yet. */
  open: number;
  /** It was refused: what is left of it need not be stored. */
  isRefused: boolean;
}

/** The points of one device in one request, behind those that came before them. */
export interface Part {
  readonly request: PointRequest;
  readonly imei: string;
  /** The world of the device; 0 for a device that memory does not know. */
  readonly worldId: number;
  /** Of the points in the request that are not stored yet. */
  places: number[];
  /** Part of the same device that must be stored first; null: this one may be. */
  before: Part | null;
  next: Part | null;
  isTaken: boolean;
}

/** Points of all worlds that may wait. */
const POINTS_MAX = 200_000;

/**
 * The points that wait for a transaction, by device: those of one device come in the order in which they arrived, and
 * wait for nobody else. Worlds take turns, and none may have more waiting than there is room left, so that one that
 * sends too much keeps nobody out.
 */
export class WaitingPoints {
  /** The newest part of each device that has one, waiting or taken. */
  readonly #newest = new Map<string, Part>();
  readonly #ready = new FairQueue<number, Part>();
  readonly #heavy = new FairQueue<number, Part>();
  readonly #countOf = new Map<number, number>();
  #count = 0;

  get count(): number {
    return this.#count;
  }

  /** False, and nothing is added, when there is no room for it. */
  add(request: PointRequest, worldOf: (imei: string) => number): boolean {
    const parts = partsOf(request, worldOf);
    if (!this.#hasRoom(request.fixes.length, parts)) return false;
    request.open = parts.length;
    for (const part of parts) {
      this.#weigh(part, 1);
      const newest = this.#newest.get(part.imei);
      this.#newest.set(part.imei, part);
      if (newest === undefined) this.#ready.push(part.worldId, part);
      else {
        newest.next = part;
        part.before = newest;
      }
    }
    return true;
  }

  #hasRoom(points: number, parts: readonly Part[]): boolean {
    const room = POINTS_MAX - this.#count - points;
    if (room < 0) return false;
    const added = new Map<number, number>();
    for (const { worldId, places } of parts) added.set(worldId, (added.get(worldId) ?? 0) + places.length);
    return [...added].every(([worldId, own]) => (this.#countOf.get(worldId) ?? 0) + own <= room);
  }

  /** Parts for one transaction, of up to so many points (or a single part). What follows on a part may go along. */
  take(maxPoints: number): Part[] {
    const taken: Part[] = [];
    let points = 0;
    const fits = ({ places }: Part): boolean => taken.length === 0 || points + places.length <= maxPoints;
    for (
      let head = this.#peek(this.#ready);
      head !== undefined && fits(head);
      head = this.#peek(this.#ready)
    ) {
      this.#ready.take();
      for (
        let part: Part | null = head;
        part !== null && !part.request.isRefused && fits(part);
        part = part.next
      ) {
        points += part.places.length;
        taken.push(this.#taken(part));
      }
    }
    return taken;
  }

  /** A part that is too much to be stored together with others. */
  takeHeavy(): Part | undefined {
    if (this.#peek(this.#heavy) === undefined) return undefined;
    return this.#taken(this.#heavy.take() as Part);
  }

  /** The next part whose request was not refused meanwhile. */
  #peek(queue: FairQueue<number, Part>): Part | undefined {
    for (let part = queue.peek(); part !== undefined; part = queue.peek()) {
      if (!part.request.isRefused) return part;
      queue.take();
      this.settle(this.#taken(part));
    }
    return undefined;
  }

  /** A part that was taken is done with: the next of its device may go on. */
  settle(part: Part): void {
    const { imei, next } = part;
    if (next === null) {
      this.#newest.delete(imei);
      return;
    }
    next.before = null;
    if (!next.isTaken) this.#ready.push(next.worldId, next);
  }

  /** A part that was taken was not stored. It is to be taken again: as any other, as a heavy one, or after `release`. */
  putBack(part: Part, as: 'ready' | 'heavy' | 'held'): void {
    part.isTaken = false;
    this.#weigh(part, 1);
    // Behind another one it waits for that.
    if (part.before !== null || as === 'held') return;
    (as === 'heavy' ? this.#heavy : this.#ready).push(part.worldId, part);
  }

  /** Lets a held part be taken again. */
  release(part: Part): void {
    this.#ready.push(part.worldId, part);
  }

  #taken(part: Part): Part {
    part.isTaken = true;
    this.#weigh(part, -1);
    return part;
  }

  #weigh({ worldId, places }: Part, sign: 1 | -1): void {
    const points = sign * places.length;
    this.#count += points;
    const own = (this.#countOf.get(worldId) ?? 0) + points;
    if (own === 0) this.#countOf.delete(worldId);
    else this.#countOf.set(worldId, own);
  }
}

function partsOf(request: PointRequest, worldOf: (imei: string) => number): Part[] {
  const parts = new Map<string, Part>();
  request.fixes.forEach(({ imei }, n) => {
    const known = parts.get(imei);
    if (known !== undefined) known.places.push(n);
    else {
      const part = {
        request,
        imei,
        worldId: worldOf(imei),
        places: [n],
        before: null,
        next: null,
        isTaken: false,
      };
      parts.set(imei, part);
    }
  });
  return [...parts.values()];
}
