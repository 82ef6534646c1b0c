import { distanceM } from '../geometry/distance.ts';
import type { Device, NearDevice } from './device.ts';

/**
 * The devices nearest to a point so far, of a search that takes many turns of the event loop. Its answer is the one of
 * the moment in which it began: devices are copied as they are found, and who is about to move is looked at first.
 */
export class LongSearch {
  readonly lat: number;
  readonly lng: number;
  readonly limit: number;
  /** Nobody farther away is among them any more. */
  reachM: number;
  /** Nearest first, of equals the lower IMEI. */
  readonly found: NearDevice[] = [];

  constructor(lat: number, lng: number, limit: number, maxM: number) {
    this.lat = lat;
    this.lng = lng;
    this.limit = limit;
    this.reachM = maxM;
  }

  /** Measures a device that has a position. */
  look(device: Device): void {
    const { position } = device;
    if (position !== null) this.offer(device, distanceM(this.lat, this.lng, position.lat, position.lng));
  }

  /** The same device may be offered again, as long as it stands where it stood. */
  offer(device: Device, offeredM: number): void {
    if (offeredM > this.reachM) return;
    const { found, limit } = this;
    const at = this.#placeOf(device.fields.imei, offeredM);
    if (found[at]?.device.fields.imei === device.fields.imei) return;
    if (at === limit) return;
    const { fields, position } = device;
    found.splice(at, 0, { device: { fields, position }, distanceM: offeredM });
    if (found.length > limit) found.pop();
    if (found.length === limit) this.reachM = found[limit - 1]!.distanceM;
  }

  /** How many of those found go before it. */
  #placeOf(imei: string, offeredM: number): number {
    let low = 0;
    let high = this.found.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      const { device, distanceM } = this.found[middle]!;
      if (distanceM < offeredM || (distanceM === offeredM && device.fields.imei < imei)) low = middle + 1;
      else high = middle;
    }
    return low;
  }
}
