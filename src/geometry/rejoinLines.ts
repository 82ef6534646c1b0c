import type { LatLng } from './latLng.ts';
import { isSeamCrossing } from './seam.ts';

type Line = readonly LatLng[];

/**
 * Undoes cutLine: lines of a GeoJSON MultiLineString are joined where one ends on 180 and another starts on -180 at
 * the same latitude, or the other way round. A point that only the cut had put in is taken out again. Directions are
 * kept; the order is free, but the next line goes before others that start in the same place.
 */
export function rejoinLines(parts: readonly Line[]): Line[] {
  const following = linkEnds(parts);
  const followers = new Set(following.values());
  const used = new Set<number>();
  const lines: Line[] = [];
  // First the lines that continue no other; what remains runs in circles, and starts anywhere.
  const all = [...parts.keys()];
  for (const start of [...all.filter((k) => !followers.has(k)), ...all]) {
    if (used.has(start)) continue;
    used.add(start);
    const line = [...parts[start]!];
    for (let k = following.get(start); k !== undefined && !used.has(k); k = following.get(k)) {
      used.add(k);
      append(line, parts[k]!);
    }
    lines.push(line);
  }
  return lines;
}

/** For each line that ends on the seam, the one that goes on beyond it. */
function linkEnds(parts: readonly Line[]): Map<number, number> {
  const waiting = new Map<string, Set<number>>();
  for (const [k, line] of parts.entries()) {
    const start = line[0];
    if (!start || Math.abs(start.lng) !== 180) continue;
    const key = seamKey(start.lat, start.lng);
    const starters = waiting.get(key);
    if (starters) starters.add(k);
    else waiting.set(key, new Set([k]));
  }
  const links = new Map<number, number>();
  for (const [k, line] of parts.entries()) {
    const end = line[line.length - 1];
    const starters = end && waiting.get(seamKey(end.lat, -end.lng));
    if (!starters) continue;
    const follower = starters.has(k + 1) ? k + 1 : starters.values().next().value;
    if (follower === undefined || follower === k) continue;
    starters.delete(follower);
    links.set(k, follower);
  }
  return links;
}

function seamKey(lat: number, lng: number): string {
  return `${lng} ${lat}`;
}

/** Both lines have the point on the seam; it stays unless it lies on the straight edge from the one to the other. */
function append(line: LatLng[], next: Line): void {
  const seam = line[line.length - 1]!;
  const before = line[line.length - 2];
  const after = next[1];
  if (before && after) {
    const [west, east] = seam.lng > 0 ? [before, after] : [after, before];
    if (isSeamCrossing(west, seam.lat, east)) line.pop();
  }
  for (let i = 1; i < next.length; i++) line.push(next[i]!);
}
