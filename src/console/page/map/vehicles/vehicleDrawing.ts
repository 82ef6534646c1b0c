import type { Map as MapLibre } from 'maplibre-gl';
import { ROW_BYTES, type SizePx, STEPS_X, STEPS_Y, stepsOf, type VehicleTable } from './vehicleTable.ts';

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
  draw(map: MapLibre, { width, height }: SizePx, nowSeconds: number, colors: VehicleColors): void {
    const gl = this.#gl;
    const places = this.#places;
    gl.clear(gl.COLOR_BUFFER_BIT);
    this.#upload();
    const worldPx = worldPxOf(map);
    // With a padding the centre of the map is not that of the canvas.
    const center = stepsOf(map.unproject([width / 2, height / 2]));
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

/**
 * The place of a vehicle is worked out here, for each frame: the way that is done by now. x and y are whole numbers
 * (stepsOf); only their difference to the centre becomes a float, so that nothing trembles at any zoom, and it is
 * the short way around the world.
 */
const VERTEX_SHADER = `#version 300 es
precision highp float;
precision highp int;
in ivec2 from;
in ivec2 to;
in vec2 times;
in uvec4 look;
uniform ivec2 center;
uniform vec2 viewportPx;
uniform float worldPx;
uniform float shiftPx;
uniform float now;
uniform float sizePx;
uniform float pixelRatio;
flat out uint status;
flat out float faded;
flat out float heading;
flat out float isChosen;
void main() {
  float part = now >= times.y ? 1.0 : max(0.0, (now - times.x) / (times.y - times.x));
  vec2 steps = vec2(from - center) + vec2(to - from) * part;
  vec2 px = steps * vec2(worldPx / ${STEPS_X}.0, worldPx / ${STEPS_Y}.0) + vec2(shiftPx, 0.0);
  bool isShown = (look.z & 1u) == 1u;
  gl_Position = isShown ? vec4(px.x * 2.0 / viewportPx.x, -px.y * 2.0 / viewportPx.y, 0.0, 1.0) : vec4(2.0, 2.0, 0.0, 1.0);
  isChosen = (look.z & 2u) == 2u ? 1.0 : 0.0;
  gl_PointSize = (isChosen == 1.0 ? max(sizePx, 14.0) * 1.7 : sizePx) * pixelRatio;
  heading = float(look.x) * ${(2 * Math.PI) / 256};
  status = look.y;
  faded = float(look.w) / 255.0;
}`;

/**
 * A dot, for a moving vehicle an arrow that points where it goes, for one that is offline a circle that fades with its age; a
 * ring around the chosen one.
 */
const FRAGMENT_SHADER = `#version 300 es
precision highp float;
precision highp int;
flat in uint status;
flat in float faded;
flat in float heading;
flat in float isChosen;
uniform vec3 colors[4];
uniform vec3 edge;
out vec4 color;
void main() {
  vec2 at = gl_PointCoord * 2.0 - 1.0;
  float scale = isChosen == 1.0 ? 1.7 : 1.0;
  float blur = fwidth(at.x) * scale;
  float ring = isChosen == 1.0 ? 1.0 - smoothstep(0.08, 0.08 + blur, abs(length(at) - 0.85)) : 0.0;
  at *= scale;
  vec2 turned = vec2(at.x * cos(heading) + at.y * sin(heading), at.y * cos(heading) - at.x * sin(heading));
  float dot = length(at) - 0.62;
  float side = abs(turned.x);
  float arrow = max(side * 0.924 - turned.y * 0.382 - 0.325, turned.y * 0.923 - side * 0.385 - 0.323);
  float far = status == 3u ? arrow : dot;
  float inner = status == 1u ? 1.0 - smoothstep(0.0, blur, length(at) - 0.3) : 0.0;
  float body = (1.0 - smoothstep(0.0, blur, far)) * (1.0 - inner);
  float around = 1.0 - smoothstep(0.14, 0.14 + blur, far);
  float alpha = max(around * (1.0 - 0.6 * faded), ring);
  if (alpha <= 0.0) discard;
  color = vec4(mix(edge, colors[status], max(body, ring)) * alpha, alpha);
}`;
