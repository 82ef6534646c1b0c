import { formatIso } from '../lib/isoTime.ts';
import { toLatLngs } from './area.ts';
import type { StoredArea } from './storedArea.ts';

/** Wire form of an area, field by field as the API document lists them. */
export function areaView({ id, definition, measures, createdAtMs }: StoredArea) {
  const { geometry } = definition;
  return {
    id,
    name: definition.name,
    color: definition.color,
    type: geometry.type,
    center: measures.center,
    radius_m: 'radiusM' in geometry ? geometry.radiusM : null,
    buffer_m: 'bufferM' in geometry ? geometry.bufferM : null,
    points: 'points' in geometry ? toLatLngs(geometry.points) : [],
    external_id: definition.externalId,
    dwell_seconds: definition.dwellSeconds,
    metrics: { area_m2: measures.areaM2, perimeter_m: measures.perimeterM, length_m: measures.lengthM },
    bounds: measures.bounds,
    created_at: formatIso(createdAtMs),
  };
}
