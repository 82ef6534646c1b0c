import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { gunzipSync } from 'node:zlib';
import fc from 'fast-check';
import { simplify, unwrapRing } from '../../src/geo/path.ts';
import { isSelfIntersecting } from '../../src/geo/selfIntersection.ts';
import type { LatLng } from '../../src/geo/wgs84.ts';

// Shapes for the tests of this folder: written down, random, and real.

/** "lng lat, lng lat, …" */
export function parsePoints(text: string): LatLng[] {
  return text.split(', ').map((pair) => {
    const [lng, lat] = pair.split(' ').map(Number);
    return { lat: lat as number, lng: lng as number };
  });
}

export function readReference<T>(name: string): T {
  return JSON.parse(readFileSync(join(import.meta.dirname, '..', 'data', name), 'utf8')) as T;
}

/** Longitude -180 to 180 of any other; 180 stays 180. */
export function wrapLng(lng: number): number {
  return lng > 180 ? lng - 360 : lng < -180 ? lng + 360 : lng;
}

/** Longitude -180 to 180 of any number of turns. */
export const turnedLng = (lng: number): number => wrapLng(lng - 360 * Math.round(lng / 360));

/** Evenly from `min` to `max`; fc.double is even over bit patterns and hardly leaves the neighbourhood of 0. */
export function even(min: number, max: number): fc.Arbitrary<number> {
  return fc.maxSafeNat().map((n) => min + ((max - min) * n) / Number.MAX_SAFE_INTEGER);
}

export function shifted(points: readonly LatLng[], degrees: number): LatLng[] {
  return points.map(({ lat, lng }) => ({ lat, lng: wrapLng(lng + degrees) }));
}

export function rotated<T>(items: readonly T[], by: number): T[] {
  return [...items.slice(by % items.length), ...items.slice(0, by % items.length)];
}

/** Degrees that doubles hold exactly, before and after adding 360: sums and comparisons of them do not round. */
export const exactDegrees = (min: number, max: number) =>
  fc.integer({ min: min * 1024, max: max * 1024 }).map((n) => n / 1024);

/** A ring that winds once around its centre: valid, at any place, over the antimeridian too; up to about 30° wide. */
export const starRings = (maxVertices: number) =>
  fc
    .record({
      lat: exactDegrees(-70, 70),
      lng: fc.oneof(exactDegrees(-180, 180), exactDegrees(175, 180), exactDegrees(-180, -175)),
      degrees: fc.constantFrom(0.01, 0.3, 3, 15),
      radii: fc.array(fc.double({ min: 0.2, max: 1, noNaN: true }), {
        minLength: 3,
        maxLength: maxVertices,
        size: 'max',
      }),
      clockwise: fc.boolean(),
    })
    .map(({ lat, lng, degrees, radii, clockwise }) => {
      const points = radii.map((radius, i) => {
        const angle = (2 * Math.PI * i) / radii.length;
        const x = lng + radius * degrees * Math.cos(angle);
        return { lat: lat + radius * degrees * Math.sin(angle), lng: wrapLng(x) };
      });
      return clockwise ? points.reverse() : points;
    });

/** Valid rings with long spikes over the antimeridian, down to nanometres wide: needles, and stars with thin rays. */
export const spikyRings = fc
  .record({
    lat: exactDegrees(-60, 60),
    shift: fc.double({ min: -0.5, max: 0.5, noNaN: true }),
    degrees: fc.double({ min: -3, max: 1.3, noNaN: true }).map((exponent) => 10 ** exponent),
    thinness: fc.double({ min: -8, max: 0, noNaN: true }).map((exponent) => 10 ** exponent),
    angle: fc.double({ min: 0, max: 2 * Math.PI, noNaN: true }),
    rays: fc.array(fc.double({ min: 0.5, max: 1, noNaN: true }), { maxLength: 40, size: 'max' }),
  })
  .map(({ lat, shift, degrees, thinness, angle, rays }) => {
    const at = (radius: number, turned: number) => ({
      lat: lat + radius * degrees * Math.sin(angle + turned),
      lng: wrapLng(180 + degrees * (shift + radius * Math.cos(angle + turned))),
    });
    if (rays.length < 6) return [at(1, Math.PI), at(1, -thinness), at(1, thinness)];
    const step = (2 * Math.PI) / rays.length;
    return rays.map((radius, i) => at(i % 2 === 0 ? radius : radius * thinness, i * step));
  })
  .map((points) => simplify(points, true))
  .filter((points) => points.length >= 3 && !isSelfIntersecting(unwrapRing(points)));

/** A ring around a pole, one vertex per meridian. */
export const polarRings = fc
  .record({
    south: fc.boolean(),
    clockwise: fc.boolean(),
    vertices: fc
      .uniqueArray(fc.integer({ min: -180, max: 179 }), { minLength: 8, maxLength: 40, size: 'max' })
      .chain((lngs) =>
        fc.tuple(
          fc.constant(lngs.toSorted((a, b) => a - b)),
          fc.array(exactDegrees(20, 89), { minLength: lngs.length, maxLength: lngs.length }),
        ),
      ),
  })
  .filter(({ vertices: [lngs] }) => lngs.every((lng, i) => (lngs[i + 1] ?? lngs[0]! + 360) - lng < 180))
  .map(({ south, clockwise, vertices: [lngs, lats] }) => {
    const points = lngs.map((lng, i) => ({ lat: south ? -lats[i]! : lats[i]!, lng }));
    return clockwise ? points.reverse() : points;
  });

const tenths = (most: number) => fc.integer({ min: -most, max: most }).map((n) => n / 10);

/** Valid rings with corners on poles, on the antimeridian and on each other's meridians, far too often. */
export const hardRings = fc
  .array(
    fc.record({
      lat: fc.oneof(fc.constantFrom(90, -90, 89, -89, 0, 45, -45, 60, -60), tenths(899)),
      lng: fc.oneof(fc.constantFrom(-180, 180, -179, 179, -90, 90, 0, 45, -135), tenths(1799)),
    }),
    { minLength: 3, maxLength: 8, size: 'max' },
  )
  .map((points) => simplify(points, true))
  .filter((points) => points.length >= 3 && !isSelfIntersecting(unwrapRing(points)));

/** Any corners on a small grid, crossing each other or not; many are on each other's edges. */
export const gridPoints = (maxVertices: number, size: number) =>
  fc.array(fc.record({ lat: fc.nat(size), lng: fc.nat(size) }), {
    minLength: 3,
    maxLength: maxVertices,
    size: 'max',
  });

const FOLDER = process.env['FLEET_TEST_DATA'];

/** Why tests over real boundaries are skipped, or false. */
export function missingRealData(file: string): string | false {
  if (FOLDER === undefined) return `FLEET_TEST_DATA names no folder with ${file}`;
  return existsSync(join(FOLDER, file)) ? false : `${file} is not in FLEET_TEST_DATA`;
}

type Position = [lng: number, lat: number];

/** The exterior rings of lazio-municipalities.geojson by municipality, without their closing repetition. */
export function lazioRings(): Map<string, LatLng[][]> {
  const text = readFileSync(join(FOLDER as string, 'lazio-municipalities.geojson'), 'utf8');
  const { features } = JSON.parse(text) as {
    features: { properties: { name: string }; geometry: { type: string; coordinates: unknown } }[];
  };
  return new Map(
    features.map(({ properties, geometry }) => {
      const polygons = (
        geometry.type === 'Polygon' ? [geometry.coordinates] : geometry.coordinates
      ) as Position[][][];
      return [properties.name, polygons.map(([exterior]) => toPoints((exterior as Position[]).slice(0, -1)))];
    }),
  );
}

export interface Boundaries {
  readonly municipalities: {
    readonly name: string;
    readonly rings: Position[][];
    readonly ref: { readonly area: number; readonly perimeter: number; readonly centroid: Position };
  }[];
  readonly outlines: { readonly name: string; readonly points: LatLng[] }[];
}

/** boundaries.json.gz: Sicily and Liguria with PostGIS' figures, and outlines at the antimeridian and far south. */
export function realBoundaries(): Boundaries {
  return JSON.parse(
    gunzipSync(readFileSync(join(FOLDER as string, 'boundaries.json.gz'))).toString('utf8'),
  ) as Boundaries;
}

export function toPoints(positions: readonly Position[]): LatLng[] {
  return positions.map(([lng, lat]) => ({ lat, lng }));
}
