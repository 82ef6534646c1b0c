import type { Pace, Steps } from '../../lib/workTurns.ts';
import type { Fix } from '../fix.ts';
import type { WatchedArea, WatchedAreas } from './geofences.ts';

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
