import type { Region } from '../../devices/index/regionWalk.ts';
import { type Box, boxRegion } from '../../devices/living/boxRegion.ts';
import { ageLimitsMs, type DeviceFilter, seenAlone } from '../../devices/living/deviceFilter.ts';
import type { LiveChunk } from '../../http/answer.ts';
import { joinedChunk } from '../../http/longBody.ts';
import { IdSet } from '../../lib/idSet.ts';
import type { DeviceMessages } from './deviceMessages.ts';

/** Which devices a stream shows: those in a box that pass a filter. At least one of them is there. */
export interface DeviceView {
  readonly box: Box | null;
  readonly filter: DeviceFilter | null;
}

/** The devices that one stream shows, so that its reader is told of those that are shown no longer. */
export class Viewer {
  readonly region: Region | null;
  readonly filter: DeviceFilter | null;
  /** The part of it that limits the reader to groups. */
  readonly #seen: DeviceFilter | null;
  /** When time alone changes what is shown: the ages of points that are limits. */
  readonly ageLimitsMs: readonly number[];
  readonly #shown = new IdSet();
  /** Ids of devices that are still to be sent at the beginning. */
  #waiting: readonly number[] = [];

  constructor({ box, filter }: DeviceView) {
    this.region = box === null ? null : boxRegion(box);
    this.filter = filter;
    this.#seen = seenAlone(filter);
    this.ageLimitsMs = filter === null ? [] : ageLimitsMs(filter);
  }

  /** Memory that it holds for its reader. */
  get bytes(): number {
    return this.#shown.bytes + Float64Array.BYTES_PER_ELEMENT * this.#waiting.length;
  }

  set waiting(ids: readonly number[]) {
    this.#waiting = ids;
  }

  /**
   * What the reader is to be sent of these; null: nothing. A device that was edited or is new, and one that is removed, is
   * told to be gone even if this id was not shown: it may have been shown with another id. A reader who is limited to groups
   * is told only of what it was shown, and of what leaves its groups as of what is removed.
   */
  messagesOf(devices: DeviceMessages): LiveChunk | null {
    const { count, ids, lats, lngs, edited, removed, areRepeated } = devices;
    const { region } = this;
    const passing = this.filter === null ? null : devices.passing(this.filter);
    const seen = this.#seen === null ? null : devices.passing(this.#seen);
    const chosen: LiveChunk[] = [];
    let shown = 0;
    for (let n = 0; n < count; n++) {
      const id = ids[n] as number;
      const isInside = region === null || region.contains(lats[n] as number, lngs[n] as number);
      if (isInside && passing?.[n] !== 0 && removed[n] === 0) {
        const isNew = this.#shown.add(id);
        if (areRepeated && !isNew) continue;
        chosen.push(devices.message(n));
        shown++;
      } else if (seen?.[n] === 0) {
        if (this.#shown.delete(id)) chosen.push(devices.gone(n));
      } else if (this.#shown.delete(id) || edited[n] === 1) {
        chosen.push(removed[n] === 1 ? devices.message(n) : devices.left(n));
      }
    }
    if (chosen.length === 0) return null;
    if (shown === count) return devices.whole;
    return chosen.length === 1 ? (chosen[0] as LiveChunk) : joinedChunk(chosen.map(({ payload }) => payload));
  }
}
