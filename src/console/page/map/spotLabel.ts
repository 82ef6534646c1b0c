import { nameOf } from '../findDevices.ts';
import { fleet } from '../liveFleet.ts';
import type { Near } from './vehicleTable.ts';

const NAMES_MAX = 5;

/** The names of the vehicles under the pointer, beside it. */
export class SpotLabel {
  readonly #element = document.createElement('div');
  #frame: number | null = null;
  #look: (() => void) | null = null;

  constructor(map: HTMLElement) {
    this.#element.className = 'spot-label';
    this.#element.hidden = true;
    map.append(this.#element);
  }

  /** The pointer is there; `near` is asked at most once a frame. */
  point({ x, y }: { x: number; y: number }, near: () => Near): void {
    this.#look = () => this.#show(x, y, near());
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = null;
      this.#look?.();
    });
  }

  hide(): void {
    this.#look = null;
    this.#element.hidden = true;
  }

  #show(x: number, y: number, { count, imeis }: Near): void {
    this.#element.hidden = count === 0;
    if (count === 0) return;
    const names = imeis
      .slice(0, NAMES_MAX)
      .map((imei) => nameOf(fleet.get(imei) ?? { imei, name: null, plate: null }));
    const more = count > names.length ? [`and ${count - names.length} more`] : [];
    this.#element.textContent = [...names, ...more].join('\n');
    this.#element.style.translate = `${x + 14}px ${y + 14}px`;
  }
}
