import type { LngLatBoundsLike, Map as MapLibre } from 'maplibre-gl';

/** A rectangle on the screen, in pixels. */
export interface Rect {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** How far the free part of a map is from its sides, in pixels. */
export interface Padding {
  readonly left: number;
  readonly top: number;
  readonly right: number;
  readonly bottom: number;
}

/** Around what the map goes to. */
const MARGIN_PX = 60;
/** Less is not free: what is flown to would stand under an edge. */
const FREE_MIN_PX = 80;

/**
 * The part of a map that the bar over its top and the panel over its right side leave free. A panel that is as wide as the map
 * is a sheet over its lower part.
 */
export function freePart(map: Rect, bar: Rect | null, panel: Rect | null): Padding {
  const top = bar === null ? 0 : bar.bottom - map.top;
  const isSheet = panel !== null && panel.right - panel.left > (map.right - map.left) * 0.7;
  const right = panel === null || isSheet ? 0 : map.right - panel.left;
  const bottom = panel !== null && isSheet ? map.bottom - panel.top : 0;
  const [width, height] = [map.right - map.left, map.bottom - map.top];
  return {
    left: 0,
    top: Math.max(0, Math.min(top, height - bottom - FREE_MIN_PX)),
    right: Math.max(0, Math.min(right, width - FREE_MIN_PX)),
    bottom: Math.max(0, Math.min(bottom, height - FREE_MIN_PX)),
  };
}

/**
 * What the map is moved to comes into the part that no panel covers, until the returned function is called. `changed`: that
 * part has another size, which has ended a flight of the map where `isFlying`.
 */
export function centreInFreePart(
  map: MapLibre,
  changed: (isFlying: boolean) => void = () => undefined,
): () => void {
  const container = map.getContainer();
  let before = '';
  const pad = (): void => {
    const place = container.closest('.with-map');
    if (place === null) return; // another view is shown
    const [bar, panel] = ['.map-pane > .filters', 'main'].map((found) => place.querySelector(found));
    for (const element of [bar, panel]) if (element != null) changes.observe(element);
    const rect = (element: Element | null | undefined) => element?.getBoundingClientRect() ?? null;
    const free = freePart(container.getBoundingClientRect(), rect(bar), rect(panel));
    const text = JSON.stringify(free);
    if (text === before) return; // it would end a flight
    before = text;
    const isFlying = map.isMoving();
    map.setPadding(free);
    changed(isFlying);
  };
  const changes = new ResizeObserver(pad);
  map.on('resize', pad);
  pad();
  return () => {
    changes.disconnect();
    map.off('resize', pad);
  };
}

/** Where a map is sent, by one who may do so while another view is shown. */
export class Camera {
  readonly #map: MapLibre;
  #waiting: (() => void) | null = null;
  /** Begins the present flight. */
  #flight: (() => void) | null = null;

  constructor(map: MapLibre) {
    this.#map = map;
    map.on('moveend', () => {
      const ended = this.#flight;
      // `flyAgain` comes before, where the size of the free part has ended it.
      queueMicrotask(() => {
        if (this.#flight === ended) this.#flight = null;
      });
    });
    map.on('resize', () => {
      if (this.#waiting !== null) this.#moveIfShown(this.#waiting);
    });
  }

  /**
   * Does it now, or once the map is shown; the last one alone waits. While another view is shown, and a moment longer, the map
   * has a size that is not its own, and would go elsewhere, or nowhere.
   */
  onceShown(move: () => void): void {
    if (this.#moveIfShown(move)) return;
    // A map that was hidden for less than a frame has no new size afterwards.
    const again = () => this.#waiting === move && this.#moveIfShown(move);
    requestAnimationFrame(() => requestAnimationFrame(again));
  }

  #moveIfShown(move: () => void): boolean {
    const { clientWidth, clientHeight } = this.#map.getContainer();
    const canvas = this.#map.getCanvas();
    const isSized = canvas.clientWidth === clientWidth && canvas.clientHeight === clientHeight;
    const isShown = clientWidth > 0 && isSized;
    this.#waiting = isShown ? null : move;
    if (isShown) move();
    return isShown;
  }

  /** The part of the map that no panel covers, in pixels of the map. */
  get free(): Rect {
    const { clientWidth, clientHeight } = this.#map.getCanvas();
    const { left = 0, top = 0, right = 0, bottom = 0 } = this.#map.getPadding();
    return { left, top, right: clientWidth - right, bottom: clientHeight - bottom };
  }

  /** The margin is smaller where little is free: nothing would fit between large ones. */
  goTo(bounds: LngLatBoundsLike, maxZoom: number): void {
    this.fly(() => {
      const { left, top, right, bottom } = this.free;
      const padding = Math.min(MARGIN_PX, (right - left) / 4, (bottom - top) / 4);
      this.#map.fitBounds(bounds, { padding, maxZoom });
    });
  }

  fly(flight: () => void): void {
    this.#flight = () => flight();
    this.#flight();
  }

  /** Goes on to where the map was sent last, unless it has arrived. */
  flyAgain(): void {
    if (this.#flight !== null) this.fly(this.#flight);
  }
}
