import { toLatLngs } from '../areas/area.ts';
import type { StoredArea } from '../areas/storedArea.ts';
import { formatIso } from '../base/isoTime.ts';
import type { AreaEvent } from '../store/fleetEvents.ts';

/** Wire form of an area, field by field as the API document lists them. */
export function areaView({ id, definition, figures, createdAtMs }: StoredArea) {
  const { geometry } = definition;
  return {
    id,
    name: definition.name,
    color: definition.color,
    type: geometry.type,
    center: figures.center,
    radius_m: 'radiusM' in geometry ? geometry.radiusM : null,
    buffer_m: 'bufferM' in geometry ? geometry.bufferM : null,
    points: 'points' in geometry ? toLatLngs(geometry.points) : [],
    external_id: definition.externalId,
    dwell_seconds: definition.dwellSeconds,
    metrics: { area_m2: figures.areaM2, perimeter_m: figures.perimeterM, length_m: figures.lengthM },
    bounds: figures.bounds,
    created_at: formatIso(createdAtMs),
  };
}

/** An entry or exit of one area. */
export function areaEventView(event: AreaEvent) {
  return {
    id: event.id,
    area_id: event.areaId,
    device: event.imei,
    event: event.direction,
    position: event.position,
    timestamp: formatIso(event.occurredAtMs),
  };
}
