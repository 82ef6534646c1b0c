import type { RecordedCase } from './record.ts';
import { formatCount, formatNumber } from './units.ts';

/**
 * The lines of docs/performance.md: a case, what it shows, and its measurements. `{name}` stands for a metric of the
 * case, `{rate}` for the rate of its last row that is not a floor.
 */
export const SUMMARY: readonly (readonly [name: string, what: string, measured: string])[] = [
  [
    'nearest',
    'nearest, k = 1, over HTTP',
    '{rate} requests/s: {of_express} × Express, {of_node} × node:http',
  ],
  [
    'nearest-tenants',
    'nearest, called by 10 000 accounts',
    '{rate} requests/s: {of_express} × Express, {of_node} × node:http',
  ],
  [
    'nearest-redis',
    'nearest, limits and versions in Redis',
    '{rate} requests/s: {of_express} × Express, {of_node} × node:http',
  ],
  [
    'contains',
    'contains, 2 000 vertices, 100 000 areas',
    '{rate} requests/s: {of_express} × Express, {of_node} × node:http',
  ],
  ['location', 'location of a device', '{rate} requests/s: {of_express} × Express, {of_node} × node:http'],
  ['devices', 'devices, pages of 50', '{rate} requests/s: {of_express} × Express, {of_node} × node:http'],
  [
    'peers',
    'against the same behind Express',
    'nearest {nearest_of_postgis} × PostGIS, {nearest_of_redis} × Redis; contains {contains_of_postgis} × PostGIS',
  ],
  ['nearest-memory', 'nearest, in process, 1 M devices', '{us_1000000} µs: {growth} × that of 10 000'],
  [
    'contains-memory',
    'contains and distance, in process, 2 000 vertices',
    '{us_2000} µs: {growth} × that of 20 vertices',
  ],
  [
    'contenders',
    'time of other libraries for the same (least of all sizes)',
    'geokdbush {nearest_1_vs_geokdbush_ranked} ×, Flatbush {edge_distance_vs_flatbush} ×, polygon-clipping {cut_vs_polygon_clipping} ×',
  ],
  [
    'ingest',
    'ingest over HTTP, durable, 10 000 areas',
    '{points_per_second} points/s: {of_unnest} × a plain insert of the rows',
  ],
  [
    'import',
    'nearest during an import of 200 × 2 000 vertices',
    'p99 {p99_ms} ms; the import takes {seconds} s',
  ],
  ['webhooks', 'point to webhook, 1 000 points/s', 'p99 {p99_ms} ms'],
  [
    'webhooks',
    'deliveries of a backlog, one pod',
    '{deliveries_per_second} a second, {cpu_us_per_delivery} µs of a core each',
  ],
  ['mixed', '2 000 polls/s, 2 000 points/s, changing areas', 'p99 of the polls {p99_ms} ms'],
  [
    'soak',
    'ten minutes of it',
    'event loop p99 {loop_p99_ms} ms; heap {heap_growth} ×, memory {rss_growth} × the start',
  ],
  ['start', 'start with 1 M devices, 100 000 areas', '{seconds} s, {rss_mb} MB'],
  ['demo', '`npm run demo` to the first answer', '{seconds} s'],
  [
    'neighbours',
    'worst effect of an attack on another customer',
    '{failed_calls} failed calls; polls {worst_poll_of_limit}, points {worst_point_of_limit} of what is allowed',
  ],
];

/** A line of the summary with the values of a case. A value that is missing is a dash. */
export function fillSummary(template: string, { metrics, rows }: RecordedCase): string {
  const last = rows.findLast(({ what }) => !what.startsWith('floor:'));
  return template.replaceAll(/\{(\w+)\}/g, (_, name: string) => {
    if (name === 'rate') return last?.perSecond === undefined ? '–' : formatCount(last.perSecond);
    const value = metrics[name];
    if (value === undefined) return '–';
    return value === 0 ? '0' : formatNumber(value);
  });
}
