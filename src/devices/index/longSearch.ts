import { distanceM } from '../../geo/distance.ts';
import type { Device, NearDevice } from '../device.ts';

/**
 * The nearest devices so far, in a search that takes many turns of the event loop. The result is as of the moment when
 * the search began: devices are copied as they are found, and a device that is about to move is offered before.
 */
export class LongSearch {
  readonly lat: number;
  readonly lng: number;
  readonly limit: number;
  /** Devices farther away than this are not accepted any more. */
  reachM: number;
  /** Sorted by distance, then by IMEI. */
  readonly found: NearDevice[] = [];

  constructor(lat: number, lng: number, limit: number, maxM: number) {
    this.lat = lat;
    this.lng = lng;
    this.limit = limit;
    this.reachM = maxM;
  }

  /** Offers a device with its present position, if it has one. */
  offerPresent(device: Device): void {
    const { position } = device;
    if (position !== null) this.offer(device, distanceM(this.lat, this.lng, position.lat, position.lng));
  }

  /** The same device may be offered again, as long as it has not moved. */
  offer(device: Device, offeredM: number): void {
    if (offeredM > this.reachM) return;
    const { found, limit } = this;
    const at = this.#rankOf(device.fields.imei, offeredM);
    if (found[at]?.device.fields.imei === device.fields.imei) return;
    if (at === limit) return;
    const { fields, position } = device;
    found.splice(at, 0, { device: { fields, position }, distanceM: offeredM });
    if (found.length > limit) found.pop();
    if (found.length === limit) this.reachM = found[limit - 1]!.distanceM;
  }

  /** How many of the devices found come before it. */
  #rankOf(imei: string, offeredM: number): number {
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
