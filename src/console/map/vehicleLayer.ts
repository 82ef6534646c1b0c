import type { CustomLayerInterface, Map as MapLibre } from 'maplibre-gl';
import { stepsOf } from './mercator.ts';
import { FRAGMENT_SHADER, VERTEX_SHADER } from './vehicleShaders.ts';
import { ROW_BYTES, type VehicleTable } from './vehicleTable.ts';

/** Red, green and blue by status: unknown, offline, parked, moving; and the edge around each. */
export interface VehicleColors {
  readonly statuses: readonly number[];
  readonly edge: readonly number[];
}

/** Faster than this nothing on wheels is; a frame in which nothing moves by a part of a pixel is not drawn. */
const SPEED_MAX_MPS = 50;
const STEP_PX = 0.25;
const EQUATOR_M = 40_075_017;

/** Draws all vehicles of a table in one call. North is up and nothing is tilted: mapView.ts sees to it. */
export class VehicleLayer implements CustomLayerInterface {
  readonly id = 'vehicles';
  readonly type = 'custom';
  colors: VehicleColors;
  readonly #table: VehicleTable;
  readonly #nowSeconds: () => number;
  #map: MapLibre | null = null;
  #program: WebGLProgram | null = null;
  #rows: WebGLVertexArrayObject | null = null;
  #buffer: WebGLBuffer | null = null;
  #uploaded: ArrayBuffer | null = null;
  #timer: ReturnType<typeof setTimeout> | null = null;
  readonly #places = new Map<string, WebGLUniformLocation | null>();

  constructor(table: VehicleTable, colors: VehicleColors, nowSeconds: () => number) {
    this.#table = table;
    this.colors = colors;
    this.#nowSeconds = nowSeconds;
  }

  onAdd(map: MapLibre, gl: WebGL2RenderingContext): void {
    this.#map = map;
    this.#program = linked(gl);
    this.#places.clear();
    this.#buffer = gl.createBuffer();
    this.#rows = gl.createVertexArray();
    this.#uploaded = null;
    gl.bindVertexArray(this.#rows);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.#buffer);
    const place = (name: string): number => {
      const index = gl.getAttribLocation(this.#program as WebGLProgram, name);
      gl.enableVertexAttribArray(index);
      return index;
    };
    gl.vertexAttribIPointer(place('from'), 2, gl.INT, ROW_BYTES, 0);
    gl.vertexAttribIPointer(place('to'), 2, gl.INT, ROW_BYTES, 8);
    gl.vertexAttribPointer(place('times'), 2, gl.FLOAT, false, ROW_BYTES, 16);
    gl.vertexAttribIPointer(place('look'), 4, gl.UNSIGNED_BYTE, ROW_BYTES, 24);
    gl.bindVertexArray(null);
  }

  onRemove(_map: MapLibre, gl: WebGL2RenderingContext): void {
    if (this.#timer !== null) clearTimeout(this.#timer);
    gl.deleteBuffer(this.#buffer);
    gl.deleteVertexArray(this.#rows);
    gl.deleteProgram(this.#program);
    this.#map = null;
  }

  render(gl: WebGL2RenderingContext): void {
    const map = this.#map;
    if (map === null) return;
    const now = this.#nowSeconds();
    gl.useProgram(this.#program);
    gl.bindVertexArray(this.#rows);
    gl.bindBuffer(gl.ARRAY_BUFFER, this.#buffer);
    this.#upload(gl);
    const { clientWidth: width, clientHeight: height } = map.getCanvas();
    const worldPx = worldPxOf(map);
    const center = stepsOf(map.getCenter());
    gl.uniform2i(this.#at(gl, 'center'), center.x, center.y);
    gl.uniform2f(this.#at(gl, 'viewportPx'), width, height);
    gl.uniform1f(this.#at(gl, 'worldPx'), worldPx);
    gl.uniform1f(this.#at(gl, 'now'), now);
    gl.uniform1f(this.#at(gl, 'sizePx'), sizePxAt(map.getZoom()));
    gl.uniform1f(this.#at(gl, 'pixelRatio'), map.getPixelRatio());
    gl.uniform3fv(this.#at(gl, 'colors'), this.colors.statuses);
    gl.uniform3fv(this.#at(gl, 'edge'), this.colors.edge);
    // A world that is narrower than the view is seen more than once.
    const copies = Math.max(0, Math.ceil((width / worldPx - 1) / 2));
    for (let copy = -copies; copy <= copies; copy++) {
      gl.uniform1f(this.#at(gl, 'shiftPx'), copy * worldPx);
      gl.drawArrays(gl.POINTS, 0, this.#table.rows);
    }
    gl.bindVertexArray(null);
    if (now < this.#table.movingUntil) this.#drawAgain(map, worldPx);
  }

  #upload(gl: WebGL2RenderingContext): void {
    const { bytes, rows, dirty } = this.#table;
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
    if (waitMs < 16) map.triggerRepaint();
    else
      this.#timer ??= setTimeout(() => {
        this.#timer = null;
        map.triggerRepaint();
      }, waitMs);
  }

  #at(gl: WebGL2RenderingContext, name: string): WebGLUniformLocation | null {
    if (!this.#places.has(name))
      this.#places.set(name, gl.getUniformLocation(this.#program as WebGLProgram, name));
    return this.#places.get(name) ?? null;
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
