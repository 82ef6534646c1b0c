import type { Map as MapLibre } from 'maplibre-gl';
import { stepsOf } from './mercator.ts';
import { FRAGMENT_SHADER, VERTEX_SHADER } from './vehicleShaders.ts';
import { ROW_BYTES, type VehicleTable } from './vehicleTable.ts';

/** Red, green and blue by status: unknown, offline, parked, moving; and the edge around each. */
export interface VehicleColors {
  readonly statuses: readonly number[];
  readonly edge: readonly number[];
}

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

/** Draws all vehicles of a table in one call. It lasts until its context is lost. */
export class VehicleDrawing {
  readonly #gl: WebGL2RenderingContext;
  readonly #table: VehicleTable;
  readonly #rows: WebGLVertexArrayObject;
  readonly #places: Places;
  #uploaded: ArrayBuffer | null = null;

  /** Throws where the shaders do not work. */
  constructor(gl: WebGL2RenderingContext, table: VehicleTable) {
    this.#gl = gl;
    this.#table = table;
    const program = linked(gl);
    gl.useProgram(program);
    gl.enable(gl.BLEND);
    gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
    this.#rows = gl.createVertexArray();
    gl.bindVertexArray(this.#rows);
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
    const places = UNIFORMS.map((name) => [name, gl.getUniformLocation(program, name)] as const);
    this.#places = Object.fromEntries(places) as Places;
  }

  /** Draws them where they are at `nowSeconds`, as this map shows the earth. */
  draw(map: MapLibre, nowSeconds: number, colors: VehicleColors): void {
    const gl = this.#gl;
    const places = this.#places;
    const { clientWidth: width, clientHeight: height } = map.getCanvas();
    gl.clear(gl.COLOR_BUFFER_BIT);
    this.#upload();
    const worldPx = worldPxOf(map);
    const center = stepsOf(map.getCenter());
    gl.uniform2i(places.center, center.x, center.y);
    gl.uniform2f(places.viewportPx, width, height);
    gl.uniform1f(places.worldPx, worldPx);
    gl.uniform1f(places.now, nowSeconds);
    gl.uniform1f(places.sizePx, sizePxAt(map.getZoom()));
    gl.uniform1f(places.pixelRatio, map.getPixelRatio());
    gl.uniform3fv(places.colors, colors.statuses);
    gl.uniform3fv(places.edge, colors.edge);
    gl.bindVertexArray(this.#rows);
    // A world that is narrower than the view is seen more than once.
    const copies = Math.max(0, Math.ceil((width / worldPx - 1) / 2));
    for (let copy = -copies; copy <= copies; copy++) {
      gl.uniform1f(places.shiftPx, copy * worldPx);
      gl.drawArrays(gl.POINTS, 0, this.#table.rows);
    }
  }

  #upload(): void {
    const gl = this.#gl;
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
