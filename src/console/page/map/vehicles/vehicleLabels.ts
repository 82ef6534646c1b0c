import type { Map as MapLibre } from 'maplibre-gl';
import { type Scheme, scheme } from '../scheme.ts';
import { type Label, LINE_PX, withoutOverlaps } from './labels.ts';
import { sizePxAt, worldPxOf } from './vehicleDrawing.ts';
import type { SizePx, VehicleTable } from './vehicleTable.ts';

/** More names cannot be read at once. */
const LABELS_MAX = 150;
/** The vehicles in view among which names are chosen. With more of them, their names would overlap anyway. */
const SEEN_MAX = 1_000;
/** How often it is decided which vehicles have their names beside them. */
const CHOOSE_EVERY_SECONDS = 0.5;
const TEXT_PX = 12;
const GAP_PX = 3;
/** Drawn texts that are kept. */
const PICTURES_MAX = 400;
const WIDTH_MAX_PX = 160;
const INKS: Readonly<Record<Scheme, { readonly ink: string; readonly halo: string }>> = {
  light: { ink: '#17202a', halo: '#ffffff' },
  dark: { ink: '#e6eaef', halo: '#11161b' },
};

interface Picture {
  readonly canvas: HTMLCanvasElement;
  /** In pixels of the page. */
  readonly width: number;
}

/** The names beside vehicles, from a zoom on, on a canvas of their own above that of the vehicles. */
export class VehicleLabels {
  readonly #table: VehicleTable;
  readonly #nameOf: (imei: string) => string;
  readonly #minZoom: number;
  readonly #canvas = document.createElement('canvas');
  readonly #context = this.#canvas.getContext('2d') as CanvasRenderingContext2D;
  readonly #pictures = new Map<string, Picture>();
  #scheme = scheme();
  #shown: readonly string[] = [];
  #chosenAt = Number.NEGATIVE_INFINITY;
  #timer: ReturnType<typeof setTimeout> | null = null;

  /** `minZoom`: where they begin. */
  constructor(table: VehicleTable, nameOf: (imei: string) => string, minZoom: number) {
    this.#table = table;
    this.#nameOf = nameOf;
    this.#minZoom = minZoom;
    this.#canvas.className = 'labels';
  }

  /** The IMEIs of those that have their names beside them. */
  get shown(): readonly string[] {
    return this.#shown;
  }

  addTo(map: MapLibre): void {
    map.getCanvasContainer().append(this.#canvas);
  }

  remove(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    this.#canvas.remove();
  }

  /**
   * Draws them where the vehicles are; `first` comes before all others. Calls `again` a little later, if names may be missing
   * and nothing else draws the next frame.
   */
  draw(map: MapLibre, size: SizePx, now: number, first: string | null, again: () => void): void {
    const { width, height } = size;
    const ratio = map.getPixelRatio();
    this.#fit(map.getCanvas());
    const context = this.#context;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    if (map.getZoom() < this.#minZoom) {
      this.#shown = [];
      this.#chosenAt = Number.NEGATIVE_INFINITY;
      return;
    }
    if (this.#scheme !== scheme()) this.#pictures.clear();
    this.#scheme = scheme();
    const center = map.unproject([width / 2, height / 2]);
    const worldPx = worldPxOf(map);
    const aside = sizePxAt(map.getZoom()) / 2 + GAP_PX;
    const isDue = now - this.#chosenAt >= CHOOSE_EVERY_SECONDS;
    if (isDue) {
      const seen = this.#table.within(center, worldPx, size, now, SEEN_MAX);
      const labels = seen.map(({ imei, x, y }) => ({
        imei,
        x: x + aside,
        y,
        width: this.#pictureOf(imei, ratio).width,
      }));
      // Who is shown stays, as far as possible: names that come and go are not read.
      const before = new Set(this.#shown);
      const rank = ({ imei }: Label): number => (imei === first ? 0 : before.has(imei) ? 1 : 2);
      labels.sort((a, b) => rank(a) - rank(b));
      this.#shown = withoutOverlaps(labels, LABELS_MAX).map(({ imei }) => imei);
      this.#chosenAt = now;
    }
    for (const { imei, x, y } of this.#table.placed(this.#shown, center, worldPx, now)) {
      const picture = this.#pictureOf(imei, ratio);
      const left = Math.round((width / 2 + x + aside) * ratio) / ratio;
      const top = Math.round((height / 2 + y - LINE_PX / 2) * ratio) / ratio;
      context.drawImage(picture.canvas, left, top, picture.width, LINE_PX);
    }
    if (isDue) return;
    this.#timer ??= setTimeout(() => {
      this.#timer = null;
      again();
    }, CHOOSE_EVERY_SECONDS * 1_000);
  }

  #fit({ width, height }: HTMLCanvasElement): void {
    if (this.#canvas.width === width && this.#canvas.height === height) return;
    this.#canvas.width = width;
    this.#canvas.height = height;
  }

  #pictureOf(imei: string, ratio: number): Picture {
    const text = this.#nameOf(imei);
    const known = this.#pictures.get(text);
    if (known !== undefined) return known;
    if (this.#pictures.size >= PICTURES_MAX) this.#pictures.clear();
    const made = drawn(text, ratio, INKS[this.#scheme]);
    this.#pictures.set(text, made);
    return made;
  }
}

/** The browser's own text: all scripts are written as they should be. */
function drawn(text: string, ratio: number, { ink, halo }: (typeof INKS)[Scheme]): Picture {
  const canvas = document.createElement('canvas');
  const context = canvas.getContext('2d') as CanvasRenderingContext2D;
  const font = `500 ${TEXT_PX}px system-ui, sans-serif`;
  context.font = font;
  const width = Math.min(WIDTH_MAX_PX, Math.ceil(context.measureText(text).width) + 2 * GAP_PX);
  canvas.width = Math.ceil(width * ratio);
  canvas.height = Math.ceil(LINE_PX * ratio);
  context.scale(ratio, ratio);
  context.font = font;
  context.textBaseline = 'middle';
  context.lineJoin = 'round';
  context.lineWidth = 3;
  context.strokeStyle = halo;
  context.fillStyle = ink;
  const widest = width - 2 * GAP_PX;
  context.strokeText(text, GAP_PX, LINE_PX / 2, widest);
  context.fillText(text, GAP_PX, LINE_PX / 2, widest);
  return { canvas, width };
}
