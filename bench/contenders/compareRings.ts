import { intersection } from 'polyclip-ts';
import polygonClipping from 'polygon-clipping';
import { cutRing } from '../../src/geo/antimeridianCut.ts';
import { buildEdgeIndex, buildRingIndex } from '../../src/geo/edgeIndex.ts';
import { nearestEdgeM } from '../../src/geo/nearestEdge.ts';
import { type Ring, unwrapRing } from '../../src/geo/path.ts';
import { ringSide } from '../../src/geo/ringSide.ts';
import type { LatLng } from '../../src/geo/wgs84.ts';
import {
  type Compared,
  type Contender,
  type Effort,
  type MeasuredContender,
  measureAlternately,
  ratioTo,
} from '../measure/measureCalls.ts';
import { jaggedRing } from '../setup/areas.ts';
import { POLYGON_CENTRE, POLYGON_RADIUS_DEG, placesAroundPolygon } from '../setup/places.ts';
import { FlatbushEdges, indexEdges } from './flatbushEdges.ts';

/** On the antimeridian, so that the ring crosses it. */
const CUT_CENTRE: LatLng = { lat: -17, lng: 180 };
const PLACES = 4_096;

/** Our edge index and Flatbush: building, containment, and the distance to the nearest edge of a polygon. */
export function compareEdges(vertices: number, effort: Effort): Compared {
  const ring = unwrapRing(jaggedRing(vertices, POLYGON_CENTRE, POLYGON_RADIUS_DEG, 1));
  const ours = buildRingIndex(ring);
  const flatbush = new FlatbushEdges(ring);
  const places = placesAroundPolygon(PLACES);
  const ask = (answer: (lat: number, lng: number) => unknown) => (n: number) => {
    const at = 2 * (n % PLACES);
    return answer(places[at]!, places[at + 1]!);
  };
  const named = (what: string, own: Call, other: Call, block?: number): Contender[] => [
    { what: `${what}: ours`, call: own, ...(block !== undefined && { block }) },
    { what: `${what}: flatbush`, call: other, ...(block !== undefined && { block }) },
  ];
  const isInside = ask((lat, lng) => ringSide(ours, lat, lng) !== 'out');
  const contains = ask((lat, lng) => flatbush.contains(lat, lng));
  const inside = measureAlternately(named(`inside of ${vertices} vertices`, isInside, contains), effort);
  const nearest = ask((lat, lng) => nearestEdgeM(ours.edges, lat, lng));
  const neighbor = ask((lat, lng) => flatbush.nearestM(lat, lng));
  const distance = measureAlternately(
    named(`nearest edge of ${vertices} vertices`, nearest, neighbor),
    effort,
  );
  const index = named(
    `index of ${vertices} edges`,
    () => buildEdgeIndex(ring),
    () => indexEdges(ring, 1),
    1,
  );
  const build = measureAlternately(index, effort);
  return {
    rows: [...inside, ...distance, ...build].map(({ row }) => row),
    ratios: {
      inside_vs_flatbush: ratioOf(inside),
      edge_distance_vs_flatbush: ratioOf(distance),
      edge_index_vs_flatbush: ratioOf(build),
    },
  };
}

type Call = Contender['call'];

/** Our cut at the antimeridian and those of polygon-clipping and polyclip-ts. */
export function compareCuts(vertices: number, effort: Effort): Compared {
  const points = jaggedRing(vertices, CUT_CENTRE, POLYGON_RADIUS_DEG, 1);
  const ring = unwrapRing(points.map(({ lat, lng }) => ({ lat, lng: lng > 180 ? lng - 360 : lng })));
  const cut = (by: string, call: Call) => ({ what: `cut of ${vertices} vertices: ${by}`, call, block: 1 });
  const measured = measureAlternately(
    [
      cut('ours', () => cutRing(ring)),
      cut('polygon-clipping', () => clipRing(polygonClipping.intersection, ring)),
      cut('polyclip-ts', () => clipRing(intersection, ring)),
    ],
    effort,
  );
  const [ours, clipping, polyclip] = measured as [MeasuredContender, MeasuredContender, MeasuredContender];
  return {
    rows: measured.map(({ row }) => row),
    ratios: {
      cut_vs_polygon_clipping: ratioTo(ours, clipping),
      cut_vs_polyclip_ts: ratioTo(ours, polyclip),
    },
  };
}

function ratioOf([ours, other]: readonly MeasuredContender[]): number {
  return ratioTo(ours!, other!);
}

type Position = [lng: number, lat: number];

type Intersect = (subject: Position[][], clip: Position[][]) => Position[][][];

/**
 * The contender of cutRing: cuts a ring at the antimeridian by intersecting it with each copy of the map that it
 * reaches into. Parts are rings without the closing repetition. Not for a ring around a pole, whose path is open.
 */
export function clipRing(intersect: Intersect, { lngs, lats }: Ring): LatLng[][] {
  const subject = [lngs.map((lng, i): Position => [lng, lats[i]!])];
  const east = Math.max(...lngs);
  const parts: LatLng[][] = [];
  for (let shift = 0; shift - 180 < east; shift += 360) {
    for (const polygon of intersect(subject, mapCopy(shift))) {
      for (const ring of polygon) {
        parts.push(ring.slice(0, -1).map(([lng, lat]) => ({ lat, lng: lng - shift })));
      }
    }
  }
  return parts;
}

function mapCopy(shift: number): Position[][] {
  const [west, east] = [shift - 180, shift + 180];
  const corners = [
    [west, -90],
    [east, -90],
    [east, 90],
    [west, 90],
    [west, -90],
  ] as Position[];
  return [corners];
}
