import { intersection } from 'polyclip-ts';
import polygonClipping from 'polygon-clipping';
import { cutRing } from '../../src/geo/antimeridianCut.ts';
import { buildEdgeIndex } from '../../src/geo/edgeIndex.ts';
import { nearestEdgeM } from '../../src/geo/nearestEdge.ts';
import { type Ring, unwrapRing } from '../../src/geo/path.ts';
import { buildRingIndex, ringSide } from '../../src/geo/ringSide.ts';
import type { LatLng } from '../../src/geo/wgs84.ts';
import { seededRandom } from '../../test/support/seededRandom.ts';
import type { Row } from '../benchCase.ts';
import { type Effort, type MeasuredContender, measureAlternately, ratioTo } from '../measure/measureCalls.ts';
import { jaggedRing } from '../setup/areas.ts';
import { FlatbushEdges, indexEdges } from './flatbushEdges.ts';

const CENTRE: LatLng = { lat: 41.9, lng: 12.5 };
const RADIUS_DEG = 0.2;
/** On the antimeridian, so that the ring crosses it. */
const CUT_CENTRE: LatLng = { lat: -17, lng: 180 };
const PLACES = 4_096;

/** Ratios are the contender's processor time divided by ours. */
export interface ComparedRings {
  readonly rows: Row[];
  readonly ratios: Readonly<Record<string, number>>;
}

/** Our edge index and Flatbush: building, containment, and the distance to the nearest edge of a polygon. */
export function compareEdges(vertices: number, effort: Effort): ComparedRings {
  const ring = unwrapRing(jaggedRing(vertices, CENTRE, RADIUS_DEG, 1));
  const ours = buildRingIndex(ring);
  const flatbush = new FlatbushEdges(ring);
  const places = placesAround();
  const ask = (answer: (lat: number, lng: number) => unknown) => (n: number) => {
    const at = 2 * (n % PLACES);
    return answer(places[at]!, places[at + 1]!);
  };
  const inside = measureAlternately(
    [
      { what: `inside of ${vertices} vertices: ours`, call: ask((...at) => ringSide(ours, ...at) !== 'out') },
      { what: `inside of ${vertices} vertices: flatbush`, call: ask((...at) => flatbush.contains(...at)) },
    ],
    effort,
  );
  const distance = measureAlternately(
    [
      {
        what: `nearest edge of ${vertices} vertices: ours`,
        call: ask((...at) => nearestEdgeM(ours.edges, ...at)),
      },
      {
        what: `nearest edge of ${vertices} vertices: flatbush`,
        call: ask((...at) => flatbush.nearestM(...at)),
      },
    ],
    effort,
  );
  const build = measureAlternately(
    [
      { what: `index of ${vertices} edges: ours`, call: () => buildEdgeIndex(ring), block: 1 },
      { what: `index of ${vertices} edges: flatbush`, call: () => indexEdges(ring, 1), block: 1 },
    ],
    effort,
  );
  return {
    rows: [...inside, ...distance, ...build].map(({ row }) => row),
    ratios: {
      inside_vs_flatbush: ratioOf(inside),
      edge_distance_vs_flatbush: ratioOf(distance),
      edge_index_vs_flatbush: ratioOf(build),
    },
  };
}

/** Our cut at the antimeridian and those of polygon-clipping and polyclip-ts. */
export function compareCuts(vertices: number, effort: Effort): ComparedRings {
  const points = jaggedRing(vertices, CUT_CENTRE, RADIUS_DEG, 1);
  const ring = unwrapRing(points.map(({ lat, lng }) => ({ lat, lng: lng > 180 ? lng - 360 : lng })));
  const measured = measureAlternately(
    [
      { what: `cut of ${vertices} vertices: ours`, call: () => cutRing(ring), block: 1 },
      {
        what: `cut of ${vertices} vertices: polygon-clipping`,
        call: () => clipRing(polygonClipping.intersection, ring),
        block: 1,
      },
      {
        what: `cut of ${vertices} vertices: polyclip-ts`,
        call: () => clipRing(intersection, ring),
        block: 1,
      },
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

/** Evenly in and around the polygon: about half of them inside. */
function placesAround(): Float64Array {
  const random = seededRandom(7);
  const wide = RADIUS_DEG / Math.cos((CENTRE.lat * Math.PI) / 180);
  return Float64Array.from({ length: 2 * PLACES }, (_, n) => {
    const share = 1.25 * (2 * random() - 1);
    return n % 2 === 0 ? CENTRE.lat + share * RADIUS_DEG : CENTRE.lng + share * wide;
  });
}

type Position = [lng: number, lat: number];

/** `intersection` of polygon-clipping or polyclip-ts. */
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
  return [
    [
      [west, -90],
      [east, -90],
      [east, 90],
      [west, 90],
      [west, -90],
    ],
  ];
}
