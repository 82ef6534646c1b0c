import type { FeatureCollection, Position } from 'geojson';

/** As the service packs it: see baseMap.ts. */
export interface PackedWorld {
  readonly land: readonly (readonly (readonly number[])[])[];
  readonly borders: readonly (readonly number[])[];
}

let loaded: FeatureCollection = { type: 'FeatureCollection', features: [] };

/** Land and borders as features with a `kind`; none before `loadWorld`. */
export function world(): FeatureCollection {
  return loaded;
}

/** Rejects where the service cannot be reached. */
export async function loadWorld(): Promise<void> {
  const response = await fetch(import.meta.resolve('/console/world.json'));
  loaded = unpackWorld((await response.json()) as PackedWorld);
}

export function unpackWorld({ land, borders }: PackedWorld): FeatureCollection {
  const coast = { type: 'MultiPolygon' as const, coordinates: land.map((rings) => rings.map(lineOf)) };
  const lines = { type: 'MultiLineString' as const, coordinates: borders.map(lineOf) };
  return {
    type: 'FeatureCollection',
    features: [
      { type: 'Feature', properties: { kind: 'land' }, geometry: coast },
      { type: 'Feature', properties: { kind: 'border' }, geometry: lines },
    ],
  };
}

function lineOf(differences: readonly number[]): Position[] {
  const line: Position[] = [];
  let [x, y] = [0, 0];
  for (let at = 0; at < differences.length; at += 2) {
    x += differences[at] as number;
    y += differences[at + 1] as number;
    line.push([x / 10, y / 10]);
  }
  return line;
}
