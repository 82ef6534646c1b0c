import assert from 'node:assert/strict';
import geodesic from 'geographiclib-geodesic';
import { buildEdgeIndex } from '../../src/geo/edgeIndex.ts';
import { nearestEdgeM } from '../../src/geo/nearestEdge.ts';
import type { Path } from '../../src/geo/path.ts';

// The oracle of distances to edges: each edge alone, measured by GeographicLib.

export const geodesicM = (latA: number, lngA: number, latB: number, lngB: number): number =>
  geodesic.Geodesic.WGS84.Inverse(latA, lngA, latB, lngB).s12 as number;

/** Up to 50 km within 0.1 m and 0.05 %, anywhere within 0.5 %. What is measured is far below: the tests hold it there. */
export function assertPromise(actualM: number, expectedM: number, message: string): void {
  const allowed =
    expectedM <= 50_000 ? 1e-6 + 1e-6 * expectedM : expectedM <= 8e6 ? 1e-4 * expectedM : 0.0034 * expectedM;
  assert.ok(Math.abs(actualM - expectedM) <= allowed, `${message}: ${actualM} instead of ${expectedM}`);
}

/** Every edge sampled, every local minimum of the samples narrowed down; all lengths by GeographicLib. */
export function nearestBySampling({ lngs, lats }: Path, lat: number, lng: number): number {
  let least = Number.POSITIVE_INFINITY;
  const bounds = lngs.length > 50 ? 12 : 48;
  for (let i = 1; i < lngs.length; i++) {
    const at = (t: number) =>
      geodesicM(
        lat,
        lng,
        Math.max(-90, Math.min(90, lats[i - 1]! + t * (lats[i]! - lats[i - 1]!))),
        lngs[i - 1]! + t * (lngs[i]! - lngs[i - 1]!),
      );
    const samples = Array.from({ length: bounds + 1 }, (_, k) => at(k / bounds));
    const width = Math.max(...samples) - Math.min(...samples);
    for (const [k, value] of samples.entries()) {
      if (value > (samples[k - 1] ?? value) || value > (samples[k + 1] ?? value) || value - width > least)
        continue;
      const [from, to] = [Math.max(0, k - 1) / bounds, Math.min(bounds, k + 1) / bounds];
      least = Math.min(least, value, narrowed(at, from, to));
    }
  }
  return least;
}

/** The least value of a function with one minimum in an interval (golden section). */
function narrowed(at: (t: number) => number, from: number, to: number): number {
  let [low, high] = [from, to];
  for (let step = 0; step < 45; step++) {
    const [a, b] = [low + 0.381966 * (high - low), low + 0.618034 * (high - low)];
    if (at(a) < at(b)) high = b;
    else low = a;
  }
  return at((low + high) / 2);
}

/** The least of the distances to each edge by itself, in an index of its own. */
export function nearestOfAll({ lngs, lats }: Path, lat: number, lng: number): number {
  const edgesM = lngs.slice(1).map((_, i) => {
    const edge = { lngs: lngs.slice(i, i + 2), lats: lats.slice(i, i + 2), points: [] };
    return nearestEdgeM(buildEdgeIndex(edge), lat, lng);
  });
  return Math.min(...edgesM);
}
