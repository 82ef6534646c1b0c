import { jaggedRing } from '../setup/areas.ts';

/** A polygon as GeoJSON text. With an external id, an import locks the external ids of the account. */
export function featureText(externalId: string | null, vertices: number): string {
  const properties = { name: 'Imported', ...(externalId === null ? {} : { external_id: externalId }) };
  return `{"type":"Feature","properties":${JSON.stringify(properties)},"geometry":${polygonText(vertices)}}`;
}

/** A feature that becomes `parts` areas. */
export function multiPointText(parts: number): string {
  const coordinates = Array.from({ length: parts }, (_, n) => `[${(n / 100).toFixed(2)},7]`);
  return `{"type":"Feature","properties":{"name":"P"},"geometry":{"type":"MultiPoint","coordinates":[${coordinates.join(',')}]}}`;
}

const texts = new Map<number, string>();

/** Cached: writing 2 000 numbers for each of 200 features would cost the attacker too much time. */
function polygonText(vertices: number): string {
  const known = texts.get(vertices);
  if (known !== undefined) return known;
  const ring = jaggedRing(vertices, { lat: 46, lng: 11 }, 0.2, 3);
  const positions = [...ring, ...ring.slice(0, 1)].map(
    ({ lat, lng }) => `[${lng.toFixed(7)},${lat.toFixed(7)}]`,
  );
  const text = `{"type":"Polygon","coordinates":[[${positions.join(',')}]]}`;
  texts.set(vertices, text);
  return text;
}
