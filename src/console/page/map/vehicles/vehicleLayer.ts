import type { Map as MapLibre } from 'maplibre-gl';
import { type VehicleColors, VehicleDrawing, worldPxOf } from './vehicleDrawing.ts';
import type { SizePx, VehicleTable } from './vehicleTable.ts';

/** Faster than this nothing on wheels is; a frame in which nothing moves by a part of a pixel is not drawn. */
const SPEED_MAX_MPS = 50;
const STEP_PX = 0.25;
const FRAME_MS = 16;
const EQUATOR_M = 40_075_017;

/**
 * Draws vehicles on a canvas of their own above that of the map: they move all the time, and land, areas and names need
 * not be drawn anew for that. North is up and nothing is tilted: mapView.ts sees to it.
 */
export class VehicleLayer {
  readonly #colors: () => VehicleColors;
  readonly #table: VehicleTable;
  readonly #nowSeconds: () => number;
  readonly #onDrawn: (size: SizePx) => void;
  readonly #canvas = document.createElement('canvas');
  readonly #gl: WebGL2RenderingContext;
  /** Null while the context is lost. */
  #drawing: VehicleDrawing | null = null;
  #map: MapLibre | null = null;
  /** Of the map; 0 while it is hidden. To ask the page for it in each frame would make it lay out at once what has changed. */
  #size: SizePx = { width: 0, height: 0 };
  readonly #resized = new ResizeObserver(([entry]) => {
    if (entry === undefined) return;
    this.#size = { width: entry.target.clientWidth, height: entry.target.clientHeight };
    this.repaint();
  });
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;

  /** Asks for the colours in each frame. Calls `onDrawn` with the size of the map after each frame. Throws where the browser has no WebGL 2. */
  constructor(
    table: VehicleTable,
    colors: () => VehicleColors,
    nowSeconds: () => number,
    onDrawn: (size: SizePx) => void,
  ) {
    this.#table = table;
    this.#nowSeconds = nowSeconds;
    this.#onDrawn = onDrawn;
    this.#colors = colors;
    const gl = this.#canvas.getContext('webgl2', { antialias: false });
    // By the name of MapLibre's error: for the person it is the same.
    if (gl === null)
      throw Object.assign(new Error('there is no WebGL 2'), { name: 'GPUInitializationError' });
    this.#gl = gl;
    this.#canvas.className = 'vehicles';
    this.#drawing = new VehicleDrawing(gl, table);
    this.#canvas.addEventListener('webglcontextlost', (event) => {
      event.preventDefault(); // else it is never restored
      this.#drawing = null;
    });
    this.#canvas.addEventListener('webglcontextrestored', () => {
      this.#drawing = new VehicleDrawing(gl, table);
      this.repaint();
    });
  }

  /** Draws above this map from now on: in its frames, and in frames of its own while the map stays as it is. */
  addTo(map: MapLibre): void {
    this.#map = map;
    map.getCanvasContainer().append(this.#canvas);
    map.on('render', this.#draw);
    this.#resized.observe(map.getCanvas());
  }

  remove(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    cancelAnimationFrame(this.#frame);
    this.#resized.disconnect();
    this.#map?.off('render', this.#draw);
    this.#map = null;
    this.#canvas.remove();
    this.#gl.getExtension('WEBGL_lose_context')?.loseContext();
  }

  /** Draws with the next frame. */
  repaint(): void {
    if (this.#frame === 0) this.#frame = requestAnimationFrame(this.#draw);
  }

  readonly #draw = (): void => {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    const map = this.#map;
    if (map === null || this.#drawing === null) return;
    const size = this.#size;
    if (size.width === 0 || size.height === 0) return; // it is hidden, and drawn again when it is shown
    const now = this.#nowSeconds();
    this.#fit(map.getCanvas());
    this.#drawing.draw(map, size, now, this.#colors());
    if (now < this.#table.movingUntil) this.#drawAgain(map);
    this.#onDrawn(size);
  };

  /** Gives the canvas the pixels of the map's. */
  #fit({ width, height }: HTMLCanvasElement): void {
    if (this.#canvas.width === width && this.#canvas.height === height) return;
    this.#canvas.width = width;
    this.#canvas.height = height;
    this.#gl.viewport(0, 0, width, height);
  }

  /** In the first frame in which the fastest may have moved enough. */
  #drawAgain(map: MapLibre): void {
    const cos = Math.cos((map.getCenter().lat * Math.PI) / 180);
    const pxPerSecond = (SPEED_MAX_MPS * worldPxOf(map)) / (EQUATOR_M * cos);
    const waitMs = Math.min(1_000, (STEP_PX / pxPerSecond) * 1_000);
    if (waitMs < FRAME_MS) this.repaint();
    else
      this.#timer ??= setTimeout(() => {
        this.#timer = null;
        this.repaint();
      }, waitMs);
  }
}
