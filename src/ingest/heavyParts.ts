import type { Device } from '../devices/device.ts';
import { FairSemaphore } from '../lib/fairSemaphore.ts';
import { MINUTE_MS } from '../lib/time.ts';
import { Pace, type Steps, type WorkTurns } from '../lib/workTurns.ts';
import { type IngestMemory, watchedAreas } from './evaluateFixes.ts';
import type { Fix } from './fix.ts';
import type { WatchedArea, WatchedAreas } from './geofences.ts';
import { type Part, rejectRequest } from './waitingPoints.ts';

/** Limits of what is found out for one transaction: areas, and processor time. */
const FOUND_MAX = { areas: 125_000, workMs: 500 };

export interface HeavyLimits {
  /** Processor time of one point. One that takes more is refused. */
  readonly pointWorkMs: number;
  /** How long a request with points of other worlds waits for such a part. Its sender has the answer before it gives up. */
  readonly sharedWaitMs: number;
}

export const HEAVY_LIMITS: HeavyLimits = { pointWorkMs: 10_000, sharedWaitMs: 10_000 };
/** Of each world one after the other. Each holds some megabytes. */
const RUNNING = { running: 16, runningPerKey: 1, waiting: Number.MAX_SAFE_INTEGER };

/** A part of which some points can be committed. */
export interface FoundPart {
  readonly part: Part;
  readonly known: KnownInside;
  /** Its first points, by time; none where the next one was refused. */
  readonly indexes: readonly number[];
  /** To be called once, when they are stored or were rejected. */
  close(): void;
}

/**
 * Parts whose evaluation takes long. Which areas contain their points is found out beforehand, in turns with others, while
 * no transaction is open and nothing is locked. Then they are committed a few points at a time, each time by a short
 * transaction of their own. Of each world one part after the other, so that a world with many leaves room to others.
 */
export class HeavyParts {
  readonly #memory: IngestMemory;
  readonly #turns: WorkTurns<string | number>;
  readonly #limits: HeavyLimits;
  readonly #onFound: (found: FoundPart) => void;
  readonly #onRefused: (part: Part) => void;
  readonly #running = new FairSemaphore<number>({ ...RUNNING, waitingPerKey: RUNNING.waiting });
  readonly #refused = new RefusedPoints();

  /** `onRefused` takes a part whose last points were refused: `outcomes` say so. */
  constructor(
    { memory, turns }: { readonly memory: IngestMemory; readonly turns: WorkTurns<string | number> },
    limits: HeavyLimits,
    onFound: (found: FoundPart) => void,
    onRefused: (part: Part) => void,
  ) {
    this.#memory = memory;
    this.#turns = turns;
    this.#limits = limits;
    this.#onFound = onFound;
    this.#onRefused = onRefused;
  }

  /** Takes a part that no transaction works on. */
  async add(part: Part): Promise<void> {
    const { request, worldId } = part;
    let hasEnded = false;
    const end = () => {
      hasEnded = true;
      for (const index of part.indexes) request.outcomes[index] ??= 'too_complex';
      this.#onRefused(part);
    };
    const leftMs = request.arrivedAtMs + this.#limits.sharedWaitMs - performance.now();
    const timer = request.isShared ? setTimeout(end, Math.max(0, leftMs)) : undefined;
    await this.#running.acquire(worldId);
    const close = () => this.#running.release(worldId);
    try {
      const found = hasEnded ? null : await this.#find(part, () => hasEnded);
      if (hasEnded || found === null) return close();
      this.#onFound({ part, ...found, close });
    } catch (error) {
      close();
      rejectRequest(request, error);
      if (!hasEnded) end();
    } finally {
      clearTimeout(timer);
    }
  }

  async #find(part: Part, hasEnded: () => boolean): Promise<Pick<FoundPart, 'known' | 'indexes'>> {
    const { fleet, areas, tenancy } = this.#memory;
    const known = new KnownInside();
    const device = fleet.anyDevice(part.imei);
    if (device === undefined) return { known, indexes: part.indexes };
    const watch = watchedAreas(areas, tenancy, device.fields.worldId);
    const steps = this.#findSteps(part, device, watch, known, hasEnded);
    return { known, indexes: await this.#turns.run(`points of world ${part.worldId}`, steps) };
  }

  /** Returns the points that can be committed. */
  *#findSteps(
    { request, indexes }: Part,
    { position }: Device,
    watch: WatchedAreas,
    known: KnownInside,
    hasEnded: () => boolean,
  ): Steps<number[]> {
    const pace = new Pace();
    const ready: number[] = [];
    // What is not newer than the newest point is late, and no area is asked.
    let newestMs = position?.recordedAtMs ?? Number.NEGATIVE_INFINITY;
    let areas = 0;
    for (const index of inTimeOrder(request.fixes, indexes)) {
      const fix = request.fixes[index] as Fix;
      if (fix.recordedAtMs > newestMs) {
        if (areas >= FOUND_MAX.areas || pace.workedMs >= FOUND_MAX.workMs) break;
        const untilMs = pace.workedMs + this.#limits.pointWorkMs;
        const isSpent = () => hasEnded() || pace.workedMs > untilMs;
        const asked = this.#refused.has(fix) ? null : yield* known.find(fix, watch, pace, isSpent);
        if (hasEnded()) break;
        if (asked === null) {
          this.#refused.add(fix);
          request.outcomes[index] = 'too_complex';
          continue;
        }
        areas += asked;
        newestMs = fix.recordedAtMs;
      }
      ready.push(index);
    }
    return ready;
  }
}

function inTimeOrder(fixes: readonly Fix[], indexes: readonly number[]): number[] {
  return indexes.toSorted((a, b) => (fixes[a] as Fix).recordedAtMs - (fixes[b] as Fix).recordedAtMs);
}

/** How many refused points are known for how long, so that a batch that is sent again does not take as long again. */
const REFUSED_MAX = 10_000;
const REFUSED_MS = 10 * MINUTE_MS;

class RefusedPoints {
  /** By device and time: until when. */
  readonly #untilMs = new Map<string, number>();

  add(fix: Fix): void {
    this.#untilMs.set(keyOf(fix), performance.now() + REFUSED_MS);
    const [oldest] = this.#untilMs.keys();
    if (this.#untilMs.size > REFUSED_MAX && oldest !== undefined) this.#untilMs.delete(oldest);
  }

  has(fix: Fix): boolean {
    return this.#untilMs.size > 0 && (this.#untilMs.get(keyOf(fix)) ?? 0) > performance.now();
  }
}

const keyOf = ({ imei, recordedAtMs }: Fix): string => `${imei} ${recordedAtMs}`;

type Position = Pick<Fix, 'lat' | 'lng'>;

/**
 * Which areas contain positions, found before their points are evaluated. It depends on nothing but the position and the
 * form that an area has, so it can be found while nothing is locked. An area that was changed since then has another form,
 * and is asked again.
 */
export class KnownInside {
  readonly #byPosition = new Map<Position, Map<WatchedArea['shape'], boolean>>();

  contains(area: WatchedArea, position: Position): boolean {
    const known = this.#byPosition.get(position)?.get(area.shape);
    return known ?? area.shape.contains(position.lat, position.lng);
  }

  /** Finds out for one position. Returns how many areas were asked; null when `isSpent` after a pause: nothing is known then. */
  *find(position: Position, watch: WatchedAreas, pace: Pace, isSpent: () => boolean): Steps<number | null> {
    const { lat, lng } = position;
    const near = watch.near(lat, lng);
    const known = new Map<WatchedArea['shape'], boolean>();
    for (const { shape } of near) {
      known.set(shape, shape.contains(lat, lng));
      if (!pace.isDue()) continue;
      yield* pace.pause();
      if (isSpent()) return null;
    }
    this.#byPosition.set(position, known);
    return near.length;
  }
}
