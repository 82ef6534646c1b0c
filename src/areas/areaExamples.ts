import { invariant } from '../lib/invariant.ts';
import type { StoredArea } from './area.ts';
import { completeDraft, parseDraft } from './areaDraft.ts';

/** Bodies that create an area, one of each type, from which the areas of the examples are made. */
export const EXAMPLE_AREA_BODIES = {
  circle: {
    name: 'Depot Rome',
    type: 'circle',
    center: { lat: 41.9028, lng: 12.4964 },
    radius_m: 250,
    external_id: 'depot/rome',
    dwell_seconds: 120,
  },
  point: { name: 'Customer 4711', type: 'point', center: { lat: 41.8902, lng: 12.4922 }, color: '#16a34a' },
  polygon: {
    name: 'Old town',
    type: 'polygon',
    points: [
      { lat: 41.906, lng: 12.47 },
      { lat: 41.906, lng: 12.485 },
      { lat: 41.894, lng: 12.485 },
      { lat: 41.894, lng: 12.47 },
    ],
  },
  polyline: {
    name: 'Delivery route 3',
    type: 'polyline',
    buffer_m: 80,
    points: [
      { lat: 41.9, lng: 12.48 },
      { lat: 41.91, lng: 12.49 },
      { lat: 41.915, lng: 12.51 },
    ],
  },
  geojson: {
    geojson: {
      type: 'Feature',
      geometry: { type: 'Point', coordinates: [12.4964, 41.9028] },
      properties: { name: 'Depot Rome', radius: 250, external_id: 'depot/rome' },
    },
    dwell_seconds: 120,
  },
} as const;

/** The area that a body creates, as it is stored under this id. */
export function areaFrom(body: object, id: number): StoredArea {
  const draft = parseDraft(body);
  const area = draft.ok ? completeDraft(draft.value) : draft;
  invariant(area.ok, 'the bodies of the examples are valid');
  const { definition, measures } = area.value;
  const createdAtMs = Date.UTC(2026, 0, 15, 10);
  return { id, worldId: 1, accountId: 1, definition, measures, createdAtMs, revision: 1 };
}

export const EXAMPLE_CIRCLE = areaFrom(EXAMPLE_AREA_BODIES.circle, 42);
export const EXAMPLE_POLYGON = areaFrom(EXAMPLE_AREA_BODIES.polygon, 43);
export const EXAMPLE_POLYLINE = areaFrom(EXAMPLE_AREA_BODIES.polyline, 44);
export const EXAMPLE_POINT_AREA = areaFrom(EXAMPLE_AREA_BODIES.point, 45);
