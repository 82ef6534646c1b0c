import type { LatLng } from '../latLng.ts';
import { crossesAntimeridian } from './antimeridian.ts';

type Line = readonly LatLng[];

/**
 * Undoes cutLine. Lines of a GeoJSON MultiLineString are joined where one ends on 180 and another starts on -180 at the
 * same latitude, or the other way round. Points that only the cut has added are removed. The order of the lines is
 * free; where several start at the same place, the one that follows in the list is joined. Directions are kept.
 */
export function rejoinLines(parts: readonly Line[]): Line[] {
  const following = linkEnds(parts);
  const followers = new Set(following.values());
  const used = new Set<number>();
  const lines: Line[] = [];
  // First the lines that continue no other. The rest are closed loops, which may start anywhere.
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

/** For each line that ends on the antimeridian, the line that continues it on the other side. */
function linkEnds(parts: readonly Line[]): Map<number, number> {
  const waiting = new Map<string, Set<number>>();
  for (const [k, line] of parts.entries()) {
    const start = line[0];
    if (!start || Math.abs(start.lng) !== 180) continue;
    const key = positionKey(start.lat, start.lng);
    const starters = waiting.get(key);
    if (starters) starters.add(k);
    else waiting.set(key, new Set([k]));
  }
  const links = new Map<number, number>();
  for (const [k, line] of parts.entries()) {
    const end = line[line.length - 1];
    const starters = end && waiting.get(positionKey(end.lat, -end.lng));
    if (!starters) continue;
    const follower = starters.has(k + 1) ? k + 1 : starters.values().next().value;
    if (follower === undefined || follower === k) continue;
    starters.delete(follower);
    links.set(k, follower);
  }
  return links;
}

function positionKey(lat: number, lng: number): string {
  return `${lng} ${lat}`;
}

/** Both lines have the point on the antimeridian. It is kept unless it only lies on the edge from one to the other. */
function append(line: LatLng[], next: Line): void {
  const shared = line[line.length - 1]!;
  const before = line[line.length - 2];
  const after = next[1];
  if (before && after) {
    const [west, east] = shared.lng > 0 ? [before, after] : [after, before];
    if (crossesAntimeridian(west, shared.lat, east)) line.pop();
  }
  for (let i = 1; i < next.length; i++) line.push(next[i]!);
}
