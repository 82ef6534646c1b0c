import { cutLine } from '../../geo/antimeridian/cutLine.ts';
import { cutRing } from '../../geo/antimeridian/cutRing.ts';
import type { LatLng } from '../../geo/latLng.ts';
import { unwrapLine } from '../../geo/path.ts';
import { unwrapRing } from '../../geo/ring.ts';
import { formatIso } from '../../lib/isoTime.ts';
import { type AreaGeometry, type AreaType, toLatLngs } from '../area.ts';
import type { StoredArea } from '../areaMeasures.ts';

/** A Feature as RFC 7946 has it; readGeometry and readProperties take it back unchanged. */
export interface AreaFeature {
  readonly type: 'Feature';
  readonly id: number;
  readonly geometry: GeoJsonGeometry;
  readonly properties: AreaProperties;
}

export interface AreaProperties {
  readonly id: number;
  readonly name: string;
  readonly color: string;
  readonly type: AreaType;
  readonly radius: number | null;
  readonly bufferDistance: number | null;
  readonly external_id: string | null;
  readonly dwell_seconds: number;
  readonly metrics: {
    readonly area_m2: number | null;
    readonly perimeter_m: number | null;
    readonly length_m: number | null;
  };
  readonly created_at: string;
}

/** [lng, lat] in degrees. */
type Position = readonly [number, number];

export type GeoJsonGeometry =
  | { readonly type: 'Point'; readonly coordinates: Position }
  | { readonly type: 'LineString'; readonly coordinates: readonly Position[] }
  | { readonly type: 'MultiLineString'; readonly coordinates: readonly (readonly Position[])[] }
  | { readonly type: 'Polygon'; readonly coordinates: readonly (readonly Position[])[] }
  | { readonly type: 'MultiPolygon'; readonly coordinates: readonly (readonly (readonly Position[])[])[] };

export function areaFeature(
  area: Pick<StoredArea, 'id' | 'definition' | 'measures' | 'createdAtMs'>,
): AreaFeature {
  const { id, definition, measures, createdAtMs } = area;
  const { geometry } = definition;
  return {
    type: 'Feature',
    id,
    geometry: geoJsonGeometry(geometry),
    properties: {
      id,
      name: definition.name,
      color: definition.color,
      type: geometry.type,
      radius: 'radiusM' in geometry ? geometry.radiusM : null,
      bufferDistance: 'bufferM' in geometry ? geometry.bufferM : null,
      external_id: definition.externalId,
      dwell_seconds: definition.dwellSeconds,
      metrics: { area_m2: measures.areaM2, perimeter_m: measures.perimeterM, length_m: measures.lengthM },
      created_at: formatIso(createdAtMs),
    },
  };
}

/** Rings are closed and counter-clockwise; what crosses the antimeridian is cut there into a Multi* (section 3.1.9). */
function geoJsonGeometry(geometry: AreaGeometry): GeoJsonGeometry {
  switch (geometry.type) {
    case 'circle':
    case 'point':
      return { type: 'Point', coordinates: position(geometry.center) };
    case 'polyline': {
      const lines = cutLine(unwrapLine(toLatLngs(geometry.points))).map((line) => line.map(position));
      const [line] = lines;
      if (line && lines.length === 1) return { type: 'LineString', coordinates: line };
      return { type: 'MultiLineString', coordinates: lines };
    }
    case 'polygon': {
      const rings = cutRing(unwrapRing(toLatLngs(geometry.points))).map(closedRing);
      const [ring] = rings;
      if (ring && rings.length === 1) return { type: 'Polygon', coordinates: [ring] };
      return { type: 'MultiPolygon', coordinates: rings.map((each) => [each]) };
    }
  }
}

function closedRing(points: readonly LatLng[]): Position[] {
  const positions = points.map(position);
  return [...positions, ...positions.slice(0, 1)];
}

function position({ lat, lng }: LatLng): Position {
  return [lng, lat];
}
