import { STEPS_X, STEPS_Y } from './mercator.ts';

/**
 * The place of a vehicle is worked out here, for each frame: the way that is done by now. x and y are whole numbers
 * (mercator.ts); only their difference to the centre becomes a float, so that nothing trembles at any zoom, and it is
 * the short way around the world.
 */
export const VERTEX_SHADER = `#version 300 es
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
}`;

/** A dot, or for a moving vehicle an arrow that points where it goes; a ring around the chosen one. */
export const FRAGMENT_SHADER = `#version 300 es
precision highp float;
precision highp int;
flat in uint status;
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
  float body = 1.0 - smoothstep(0.0, blur, far);
  float around = 1.0 - smoothstep(0.14, 0.14 + blur, far);
  float alpha = max(around, ring);
  if (alpha <= 0.0) discard;
  color = vec4(mix(edge, colors[status], max(body, ring)) * alpha, alpha);
}`;
