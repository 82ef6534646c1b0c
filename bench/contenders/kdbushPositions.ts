import { around } from 'geokdbush';
import KDBush from 'kdbush';
import type { NearHit } from '../../src/devices/index/nearestHits.ts';
import { distanceM } from '../../src/geo/distance.ts';

/** How many more than asked are fetched, to be ranked again by the exact distance. */
export const OVER_FETCH = 4;

/**
 * The contender of PositionIndex: KDBush, searched by geokdbush. KDBush is static, so after moves it must be built
 * again. geokdbush ranks by the great circle of a sphere, which differs from the ellipsoid by up to 0.6 %.
 */
export class KdbushPositions {
  /** Latitude and longitude of device n at 2n and 2n + 1. */
  readonly #positions: Float64Array;
  #index: KDBush;

  constructor(positions: Float64Array) {
    this.#positions = positions;
    this.#index = this.#build();
  }

  get bytes(): number {
    return this.#index.data.byteLength;
  }

  /** Takes over the positions as they are now. */
  rebuild(): void {
    this.#index = this.#build();
  }

  /** The devices nearest on a sphere. */
  nearest(lat: number, lng: number, limit: number): number[] {
    return around(this.#index, lng, lat, limit);
  }

  /** The devices nearest on the ellipsoid, if they are among the `limit + extra` nearest on a sphere. */
  nearestRanked(lat: number, lng: number, limit: number, extra = OVER_FETCH): NearHit[] {
    const hits = around(this.#index, lng, lat, limit + extra).map((slot) => {
      const position = 2 * slot;
      const [toLat, toLng] = [this.#positions[position]!, this.#positions[position + 1]!];
      return { slot, distanceM: distanceM(lat, lng, toLat, toLng) };
    });
    return hits.sort((a, b) => a.distanceM - b.distanceM || a.slot - b.slot).slice(0, limit);
  }

  #build(): KDBush {
    const index = new KDBush(this.#positions.length / 2);
    for (let at = 0; at < this.#positions.length; at += 2) {
      index.add(this.#positions[at + 1]!, this.#positions[at]!);
    }
    return index.finish();
  }
}
