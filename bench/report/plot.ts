import type { Curve } from '../benchCase.ts';

const WIDTH = 760;
const HEIGHT = 420;
const MARGIN = { left: 64, right: 24, top: 40, bottom: 116 };
const COLORS = ['#2563eb', '#dc2626', '#059669', '#d97706', '#7c3aed', '#0891b2'];
const LEGEND_LINE = 18;
const TITLE = 'Processor time of one call by the number of devices or areas';

/**
 * The curves as an SVG image, both axes logarithmic: what grows with the logarithm of its size looks flat, what grows
 * with the size itself rises by a decade for each decade. `caption` says where and when.
 */
export function plot(curves: readonly Curve[], caption: string): string {
  const all = curves.flatMap(({ points }) => points);
  const x = logScale(
    all.map(([size]) => size),
    MARGIN.left,
    WIDTH - MARGIN.right,
  );
  const y = logScale(
    all.map(([, us]) => us),
    HEIGHT - MARGIN.bottom,
    MARGIN.top,
  );
  const lines = curves.map(({ points }, n) => {
    const at = points.map(([size, us]) => `${x.at(size)},${y.at(us)}`);
    const color = COLORS[n % COLORS.length] as string;
    const dots = points.map(
      ([size, us]) => `<circle cx="${x.at(size)}" cy="${y.at(us)}" r="3" fill="${color}"/>`,
    );
    return `<polyline points="${at.join(' ')}" fill="none" stroke="${color}" stroke-width="2"/>${dots.join('')}`;
  });
  const legend = curves.map(({ name }, n) => {
    const top = HEIGHT - MARGIN.bottom + 44 + LEGEND_LINE * Math.floor(n / 2);
    const left = MARGIN.left + (n % 2) * ((WIDTH - MARGIN.left) / 2);
    return `<rect x="${left}" y="${top - 9}" width="10" height="10" fill="${COLORS[n % COLORS.length]}"/>${text(left + 16, top, name)}`;
  });
  const xTicks = x.decades.map(
    (size) =>
      `<path d="M${x.at(size)} ${MARGIN.top}V${HEIGHT - MARGIN.bottom}" stroke="#e5e7eb"/>${text(x.at(size), HEIGHT - MARGIN.bottom + 18, shown(size), 'middle')}`,
  );
  const yTicks = y.decades.map(
    (us) =>
      `<path d="M${MARGIN.left} ${y.at(us)}H${WIDTH - MARGIN.right}" stroke="#e5e7eb"/>${text(MARGIN.left - 8, y.at(us) + 4, `${shown(us)} µs`, 'end')}`,
  );
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${HEIGHT}" font-family="system-ui, sans-serif" font-size="12">`,
    `<title>${TITLE}</title>`,
    `<rect width="${WIDTH}" height="${HEIGHT}" fill="#ffffff"/>`,
    text(MARGIN.left, 22, TITLE),
    ...xTicks,
    ...yTicks,
    ...lines,
    ...legend,
    text(MARGIN.left, HEIGHT - 12, caption),
    '</svg>',
    '',
  ].join('\n');
}

/** Whole decades around the values, spread over [start, end] of the image. */
function logScale(values: readonly number[], start: number, end: number) {
  const low = Math.floor(Math.log10(Math.min(...values)));
  const high = Math.max(low + 1, Math.ceil(Math.log10(Math.max(...values))));
  const at = (value: number) =>
    Math.round(10 * (start + ((Math.log10(value) - low) / (high - low)) * (end - start))) / 10;
  return { at, decades: Array.from({ length: high - low + 1 }, (_, n) => 10 ** (low + n)) };
}

function shown(value: number): string {
  if (value >= 1e6) return `${value / 1e6} M`;
  return value >= 1e3 ? `${value / 1e3} k` : String(Number(value.toPrecision(1)));
}

function text(x: number, y: number, content: string, anchor = 'start'): string {
  const escaped = content.replaceAll('&', '&amp;').replaceAll('<', '&lt;');
  return `<text x="${x}" y="${y}" text-anchor="${anchor}" fill="#111827">${escaped}</text>`;
}
