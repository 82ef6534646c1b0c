import { leftDeviceJson, removedDeviceJson } from '../../devices/device.ts';
import type { DeviceFilter } from '../../devices/living/deviceFilter.ts';
import type { Changed } from '../../devices/worldChanges.memory.ts';
import type { LiveChunk } from '../../http/answer.ts';
import { joinedChunk, liveChunk } from '../../http/longBody.ts';
import type { ItemTexts } from '../pages.ts';
import { passesFilter } from '../readFiltered.ts';

/** A server-sent event (HTML standard, section 9.2.5): a type, a cursor and one line of JSON. */
export function message(type: 'device' | 'fleet_event' | 'heartbeat', id: string, data: string): string {
  return `event: ${type}\nid: ${id}\ndata: ${data}\n\n`;
}

/** Devices that are sent together, as they were at one moment. */
export interface SentDevices {
  readonly items: readonly Changed[];
  /** The `id` of their messages. */
  readonly id: string;
  readonly nowMs: number;
  /** Whether a reader may have been sent one of them before as it is now. */
  readonly areRepeated: boolean;
  /** Whether anything but the position of an item has changed since it was sent. */
  readonly isEdited: (item: Changed) => boolean;
}

/**
 * The messages of some devices for readers who are shown different ones of them. A message is made when the first reader
 * needs it, and its bytes are shared by all.
 */
export class DeviceMessages {
  readonly count: number;
  readonly areRepeated: boolean;
  readonly ids: Float64Array;
  /** NaN: it has no position, or is removed. */
  readonly lats: Float64Array;
  readonly lngs: Float64Array;
  /** A 1 for each item that was edited or is new or removed: a reader may have been sent its IMEI with another id. */
  readonly edited: Uint8Array;
  /** A 1 for each item that is removed. */
  readonly removed: Uint8Array;
  readonly #items: readonly Changed[];
  readonly #sent: SentDevices;
  readonly #texts: ItemTexts;
  readonly #messages: (LiveChunk | undefined)[];
  readonly #lefts: (LiveChunk | undefined)[] = [];
  readonly #gone: (LiveChunk | undefined)[] = [];
  /** Of each filter, which of the items pass. */
  readonly #passing = new Map<string, Uint8Array>();
  #whole: LiveChunk | null = null;

  constructor(sent: SentDevices, texts: ItemTexts) {
    const { items, areRepeated } = sent;
    this.#items = items;
    this.#sent = sent;
    this.#texts = texts;
    this.count = items.length;
    this.areRepeated = areRepeated;
    this.#messages = new Array(this.count);
    this.ids = Float64Array.from(items, ({ id }) => id);
    // Devices are read here: memory changes before all readers have had their turn.
    this.lats = Float64Array.from(items, ({ device }) => device?.taken().position?.lat ?? Number.NaN);
    this.lngs = Float64Array.from(items, ({ device }) => device?.position?.lng ?? Number.NaN);
    this.edited = Uint8Array.from(items, (item) => Number(sent.isEdited(item)));
    this.removed = Uint8Array.from(items, ({ device }) => Number(device === null));
  }

  /** A 1 for each item that passes. */
  passing(filter: DeviceFilter): Uint8Array {
    let passing = this.#passing.get(filter.key);
    if (passing === undefined) {
      passing = Uint8Array.from(this.#items, (item) => Number(passesFilter(filter, item, this.#sent.nowMs)));
      this.#passing.set(filter.key, passing);
    }
    return passing;
  }

  /** What the item is now, or that it is removed. */
  message(n: number): LiveChunk {
    const { id, nowMs } = this.#sent;
    this.#messages[n] ??= liveChunk(message('device', id, this.#texts.device(this.#item(n), nowMs)));
    return this.#messages[n];
  }

  /** The message that an item has left the view. */
  left(n: number): LiveChunk {
    const { device } = this.#item(n);
    this.#lefts[n] ??= liveChunk(message('device', this.#sent.id, leftDeviceJson(device?.imei ?? '')));
    return this.#lefts[n];
  }

  /** That the item is removed, for a reader who may not know that it is elsewhere. */
  gone(n: number): LiveChunk {
    const item = this.#item(n);
    const imei = item.device === null ? item.imei : item.device.imei;
    this.#gone[n] ??= liveChunk(message('device', this.#sent.id, removedDeviceJson(imei)));
    return this.#gone[n];
  }

  /** The messages of all items, for every reader who is shown all of them. */
  get whole(): LiveChunk {
    this.#whole ??= joinedChunk(this.#items.map((_, n) => this.message(n).payload));
    return this.#whole;
  }

  #item(n: number): Changed {
    return this.#items[n] as Changed;
  }
}
