import type { Map as MapLibre } from 'maplibre-gl';
import { stepsOf } from './mercator.ts';
import { FRAGMENT_SHADER, VERTEX_SHADER } from './vehicleShaders.ts';
import { ROW_BYTES, type VehicleTable } from './vehicleTable.ts';

/** Red, green and blue by status: unknown, offline, parked, moving; and the edge around each. */
export interface VehicleColors {
  readonly statuses: readonly number[];
  readonly edge: readonly number[];
}

/** What a layer draws, and whom it tells of each frame. */
export interface VehicleLayerPorts {
  readonly table: VehicleTable;
  readonly nowSeconds: () => number;
  readonly onDrawn: () => void;
}

/** Faster than this nothing on wheels is; a frame in which nothing moves by a part of a pixel is not drawn. */
const SPEED_MAX_MPS = 50;
const STEP_PX = 0.25;
const FRAME_MS = 16;
const EQUATOR_M = 40_075_017;

const UNIFORMS = [
  'center',
  'viewportPx',
  'worldPx',
  'shiftPx',
  'now',
  'sizePx',
  'pixelRatio',
  'colors',
  'edge',
] as const;
type Places = Readonly<Record<(typeof UNIFORMS)[number], WebGLUniformLocation | null>>;

/**
 * Draws all vehicles of a table in one call, on a canvas of its own above that of the map: vehicles move all the time,
 * and land, areas and names need not be drawn anew for that. North is up and nothing is tilted: mapView.ts sees to it.
 */
export class VehicleLayer {
  colors: VehicleColors;
  readonly #ports: VehicleLayerPorts;
  readonly #canvas = document.createElement('canvas');
  readonly #gl: WebGL2RenderingContext;
  /** Null while the context is lost. */
  #drawing: { readonly rows: WebGLVertexArrayObject; readonly places: Places } | null = null;
  #map: MapLibre | null = null;
  #uploaded: ArrayBuffer | null = null;
  #frame = 0;
  #timer: ReturnType<typeof setTimeout> | null = null;

  /** Throws where the browser has no WebGL 2. */
  constructor(ports: VehicleLayerPorts, colors: VehicleColors) {
    this.#ports = ports;
    this.colors = colors;
    const gl = this.#canvas.getContext('webgl2', { antialias: false });
    // By the name of MapLibre's error: for the person it is the same.
    if (gl === null)
      throw Object.assign(new Error('there is no WebGL 2'), { name: 'GPUInitializationError' });
    this.#gl = gl;
    this.#canvas.className = 'vehicles';
    this.#drawing = this.#prepare();
    this.#canvas.addEventListener('webglcontextlost', (event) => {
      event.preventDefault(); // else it is never restored
      this.#drawing = null;
    });
    this.#canvas.addEventListener('webglcontextrestored', () => {
      this.#drawing = this.#prepare();
      this.repaint();
    });
  }

  /** Draws above this map from now on: in its frames, and in frames of its own while the map stays as it is. */
  addTo(map: MapLibre): void {
    this.#map = map;
    map.getCanvasContainer().append(this.#canvas);
    map.on('render', this.#draw);
    this.repaint();
  }

  remove(): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    cancelAnimationFrame(this.#frame);
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
    const { table, nowSeconds, onDrawn } = this.#ports;
    const { clientWidth: width, clientHeight: height } = map.getCanvas();
    if (width === 0 || height === 0) return; // it is hidden, and drawn again when it is shown
    const now = nowSeconds();
    const gl = this.#gl;
    const { rows, places } = this.#drawing;
    this.#fit(map.getCanvas());
    gl.clear(gl.COLOR_BUFFER_BIT);
    this.#upload(gl);
    const worldPx = worldPxOf(map);
    const center = stepsOf(map.getCenter());
    gl.uniform2i(places.center, center.x, center.y);
    gl.uniform2f(places.viewportPx, width, height);
    gl.uniform1f(places.worldPx, worldPx);
    gl.uniform1f(places.now, now);
    gl.uniform1f(places.sizePx, sizePxAt(map.getZoom()));
    gl.uniform1f(places.pixelRatio, map.getPixelRatio());
    gl.uniform3fv(places.colors, this.colors.statuses);
    gl.uniform3fv(places.edge, this.colors.edge);
    gl.bindVertexArray(rows);
    // A world that is narrower than the view is seen more than once.
    const copies = Math.max(0, Math.ceil((width / worldPx - 1) / 2));
    for (let copy = -copies; copy <= copies; copy++) {
      gl.uniform1f(places.shiftPx, copy * worldPx);
      gl.drawArrays(gl.POINTS, 0, table.rows);
    }
    if (now < table.movingUntil) this.#drawAgain(map, worldPx);
    onDrawn();
  };

  /** Everything that lasts until the context is lost. */
  #prepare(): { rows: WebGLVertexArrayObject; places: Places } {
    const gl = this.#gl;
    const program = linked(gl);
    gl.useProgram(program);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    const rows = gl.createVertexArray();
    gl.bindVertexArray(rows);
    gl.bindBuffer(gl.ARRAY_BUFFER, gl.createBuffer());
    const attribute = (name: string): number => {
      const index = gl.getAttribLocation(program, name);
      gl.enableVertexAttribArray(index);
      return index;
    };
    gl.vertexAttribIPointer(attribute('from'), 2, gl.INT, ROW_BYTES, 0);
    gl.vertexAttribIPointer(attribute('to'), 2, gl.INT, ROW_BYTES, 8);
    gl.vertexAttribPointer(attribute('times'), 2, gl.FLOAT, false, ROW_BYTES, 16);
    gl.vertexAttribIPointer(attribute('look'), 4, gl.UNSIGNED_BYTE, ROW_BYTES, 24);
    this.#uploaded = null;
    const places = UNIFORMS.map((name) => [name, gl.getUniformLocation(program, name)] as const);
    return { rows, places: Object.fromEntries(places) as Places };
  }

  /** Gives the canvas the pixels of the map's. */
  #fit({ width, height }: HTMLCanvasElement): void {
    if (this.#canvas.width === width && this.#canvas.height === height) return;
    this.#canvas.width = width;
    this.#canvas.height = height;
    this.#gl.viewport(0, 0, width, height);
  }

  #upload(gl: WebGL2RenderingContext): void {
    const { bytes, rows, dirty } = this.#ports.table;
    if (this.#uploaded === bytes) {
      const source = new Uint8Array(bytes);
      dirty.take(rows, (from, to) => {
        const [offset, length] = [from * ROW_BYTES, (to - from) * ROW_BYTES];
        gl.bufferSubData(gl.ARRAY_BUFFER, offset, source, offset, length);
      });
    } else {
      gl.bufferData(gl.ARRAY_BUFFER, bytes, gl.DYNAMIC_DRAW);
      dirty.clear();
      this.#uploaded = bytes;
    }
  }

  #drawAgain(map: MapLibre, worldPx: number): void {
    const cos = Math.cos((map.getCenter().lat * Math.PI) / 180);
    const pxPerSecond = (SPEED_MAX_MPS * worldPx) / (EQUATOR_M * cos);
    const waitMs = Math.min(1_000, (STEP_PX / pxPerSecond) * 1_000);
    if (waitMs < FRAME_MS) this.repaint();
    else
      this.#timer ??= setTimeout(() => {
        this.#timer = null;
        this.repaint();
      }, waitMs);
  }
}

/** The width of the world on the map. */
export function worldPxOf(map: MapLibre): number {
  return 512 * 2 ** map.getZoom();
}

/** Small where many are seen, and large enough to be hit where few are. */
export function sizePxAt(zoom: number): number {
  return Math.max(7, Math.min(22, zoom * 1.6));
}

function linked(gl: WebGL2RenderingContext): WebGLProgram {
  const program = gl.createProgram();
  for (const [type, source] of [
    [gl.VERTEX_SHADER, VERTEX_SHADER],
    [gl.FRAGMENT_SHADER, FRAGMENT_SHADER],
  ] as const) {
    const shader = gl.createShader(type) as WebGLShader;
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS) && !gl.isContextLost())
    throw new Error(`the shaders do not work here: ${gl.getProgramInfoLog(program)}`);
  return program;
}
