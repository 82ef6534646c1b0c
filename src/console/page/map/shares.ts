import { STATUSES, type Status, type StatusCounts } from '../filters.ts';
import { grouped } from '../parts.ts';
import type { TilePoint } from './deviceTiles.ts';
import type { VehicleColors } from './vehicles/vehicleDrawing.ts';

/** As the colours of vehicles are ordered. */
const COLORED: readonly Status[] = ['unknown', 'offline', 'parked', 'moving'];
/** A ring shows shares in parts of a twelfth, so that there are few pictures. */
const PARTS = 12;
const PREFIX = 'shares ';
/** Of a picture, at two pixels a CSS pixel. */
const SIDE_PX = 96;

export function countOf(point: TilePoint): number {
  return 'counts' in point ? sumOf(point.counts) : 1;
}

function sumOf(counts: StatusCounts): number {
  return STATUSES.reduce((sum, status) => sum + counts[status], 0);
}

const short = new Intl.NumberFormat('en', { notation: 'compact', maximumFractionDigits: 1 });

/** How a cluster is drawn: `picture` names a ring with its shares, `label` is its count. */
export function clusterLook(counts: StatusCounts, colors: VehicleColors) {
  const count = sumOf(counts);
  return {
    count,
    picture: PREFIX + twelfths(counts).join(' '),
    label: short.format(count),
    ink: cssColor(colors.edge.map((part) => (part > 0.5 ? 0.1 : 0.93))),
    scale: 0.7 + 0.12 * Math.log10(count),
    ...counts,
  };
}

/** All that a cluster says. */
export function clusterText(counts: StatusCounts): string {
  const count = sumOf(counts);
  const there = STATUSES.filter((status) => counts[status] > 0);
  const parts = there.map((status) => `${grouped(counts[status])} ${status}`);
  return `${grouped(count)} ${count === 1 ? 'vehicle' : 'vehicles'}: ${parts.join(', ')}`;
}

/** The shares of the statuses in STATUSES: twelfths that add up, as near as they can be. */
export function twelfths(counts: StatusCounts): number[] {
  const exact = STATUSES.map((status) => (PARTS * counts[status]) / sumOf(counts));
  const parts = exact.map(Math.floor);
  const rest = (n: number): number => (exact[n] as number) - (parts[n] as number);
  while (parts.reduce((sum, part) => sum + part, 0) < PARTS) {
    const most = parts.reduce((best, _, n) => (rest(n) > rest(best) ? n : best), 0);
    parts[most] = (parts[most] as number) + 1;
  }
  return parts;
}

export function isShares(name: string): boolean {
  return name.startsWith(PREFIX);
}

export function colorOf(status: Status, { statuses }: VehicleColors): string {
  const at = 3 * COLORED.indexOf(status);
  return cssColor(statuses.slice(at, at + 3));
}

function cssColor(rgb: readonly number[]): string {
  return `rgb(${rgb.map((part) => Math.round(255 * part)).join(' ')})`;
}

/** A disc with a ring around it, of which each status has its share, clockwise from the top. */
export function drawShares(name: string, colors: VehicleColors): ImageData {
  const canvas = document.createElement('canvas');
  canvas.width = canvas.height = SIDE_PX;
  const context = canvas.getContext('2d') as CanvasRenderingContext2D;
  const middle = SIDE_PX / 2;
  context.fillStyle = cssColor(colors.edge);
  context.arc(middle, middle, middle - 1, 0, 2 * Math.PI);
  context.fill();
  context.lineWidth = 14;
  let from = -Math.PI / 2;
  for (const [n, part] of name.slice(PREFIX.length).split(' ').entries()) {
    const to = from + (2 * Math.PI * Number(part)) / PARTS;
    context.beginPath();
    context.strokeStyle = colorOf(STATUSES[n] as Status, colors);
    context.arc(middle, middle, middle - 10, from, to);
    context.stroke();
    from = to;
  }
  return context.getImageData(0, 0, SIDE_PX, SIDE_PX);
}
