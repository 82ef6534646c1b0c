import { toLatLngs } from '../areas/area.ts';
import { areaFeature } from '../areas/geojsonOut.ts';
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

/** How many vertices are written between two looks at the other requests. */
const SLICE_VERTICES = 5_000;

/**
 * The JSON of many areas, written in slices: two hundred of two thousand vertices each are 16 MB, and nobody else
 * shall wait for them.
 */
export async function areaListJson(areas: readonly StoredArea[], asGeoJson: boolean): Promise<string> {
  const parts: string[] = [];
  let vertices = 0;
  for (const area of areas) {
    parts.push(JSON.stringify(asGeoJson ? areaFeature(area) : areaView(area)));
    vertices += vertexCount(area);
    if (vertices >= SLICE_VERTICES) {
      vertices = 0;
      await new Promise((resolve) => setImmediate(resolve));
    }
  }
  const list = `[${parts.join(',')}]`;
  return asGeoJson ? `{"type":"FeatureCollection","features":${list}}` : list;
}

function vertexCount({ definition: { geometry } }: StoredArea): number {
  return 'points' in geometry ? geometry.points.length / 2 : 1;
}
