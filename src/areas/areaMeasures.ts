import { type Bounds, circleBounds, corridorBounds, ringBounds } from '../geo/bounds.ts';
import { ringCentroid } from '../geo/centroid.ts';
import type { LatLng } from '../geo/latLng.ts';
import { circleMeasures, pathLengthM, ringMeasures } from '../geo/measure.ts';
import { unwrapLine } from '../geo/path.ts';
import { unwrapRing } from '../geo/ring.ts';
import { type AreaDefinition, type AreaGeometry, toLatLngs } from './area.ts';

/** What is computed from an area's geometry. */
export interface AreaMeasures {
  /** Polygons and circles. */
  readonly areaM2: number | null;
  readonly perimeterM: number | null;
  /** Tracks. */
  readonly lengthM: number | null;
  /** Bounds of everything in the area, including its radius or margin. */
  readonly bounds: Bounds;
  /** The given centre of a circle or place, the centroid of a polygon, null for a track. */
  readonly center: LatLng | null;
}

export function areaMeasures(geometry: AreaGeometry): AreaMeasures {
  switch (geometry.type) {
    case 'point':
    case 'circle': {
      const { center, radiusM } = geometry;
      const measures = geometry.type === 'circle' ? circleMeasures(center.lat, radiusM) : NO_MEASURES;
      return { ...measures, lengthM: null, bounds: circleBounds(center, radiusM), center };
    }
    case 'polygon': {
      const ring = unwrapRing(toLatLngs(geometry.points));
      const bounds = ringBounds(ring);
      return { ...ringMeasures(ring), lengthM: null, bounds, center: within(bounds, ringCentroid(ring)) };
    }
    case 'polyline': {
      const path = unwrapLine(toLatLngs(geometry.points));
      const bounds = corridorBounds(path, geometry.bufferM);
      return { ...NO_MEASURES, lengthM: pathLengthM(path), bounds, center: null };
    }
  }
}

const NO_MEASURES = { areaM2: null, perimeterM: null };

/** The centroid of a sliver is what little rounding left of its area, at worst NaN: its bounds then give the middle. */
function within({ south, west, north, east }: Bounds, centroid: LatLng): LatLng {
  const { lat, lng } = centroid;
  const width = east < west ? east - west + 360 : east - west;
  const fromWest = lng < west ? lng - west + 360 : lng - west;
  if (lat >= south && lat <= north && fromWest <= width) return centroid;
  const middle = west + width / 2;
  return { lat: (south + north) / 2, lng: middle > 180 ? middle - 360 : middle };
}

/** An area as Postgres holds it. */
export interface StoredArea {
  readonly id: number;
  readonly worldId: number;
  /** Who made it: the namespace of its external id. */
  readonly accountId: number;
  readonly definition: AreaDefinition;
  readonly measures: AreaMeasures;
  readonly createdAtMs: number;
  /** Rises with every write. */
  readonly revision: number;
}
