import { median } from '../measure/latencies.ts';
import { jaggedRing } from '../setup/areas.ts';
import { placesOf } from '../setup/places.ts';
import { answerQuestions } from '../worker.ts';

export type ImportOrder =
  /** Make the bodies of `times` imports, each with other polygons. */
  | { readonly kind: 'make'; readonly times: number; readonly features: number; readonly vertices: number }
  | { readonly kind: 'post'; readonly url: string; readonly headers: Readonly<Record<string, string>> };

export interface ImportReply {
  readonly bytes: number;
  readonly parseSeconds: number;
  readonly seconds: readonly number[];
}

const RADIUS_DEG = 0.2;
let made = 0;
let bodies: { bytes: Buffer<ArrayBuffer>; features: number }[] = [];

// A worker, since making and sending megabytes would block the measured service.
answerQuestions(async (order: ImportOrder): Promise<ImportReply> => {
  if (order.kind === 'make') {
    const { times, features, vertices } = order;
    bodies = Array.from({ length: times }, () => ({ bytes: makeBody(features, vertices), features }));
    const bytes = Math.max(...bodies.map((body) => body.bytes.length));
    return { bytes, parseSeconds: median(bodies.map(parseSeconds)), seconds: [] };
  }
  const seconds: number[] = [];
  for (const body of bodies.splice(0)) seconds.push(await post(order, body));
  return { bytes: 0, parseSeconds: 0, seconds };
});

function parseSeconds({ bytes }: { bytes: Buffer }): number {
  const startMs = performance.now();
  JSON.parse(bytes.toString());
  return (performance.now() - startMs) / 1_000;
}

/** Sends one import and returns its duration in seconds. Throws unless every feature became an area. */
async function post(
  { url, headers }: Extract<ImportOrder, { kind: 'post' }>,
  { bytes, features }: { bytes: Buffer<ArrayBuffer>; features: number },
): Promise<number> {
  const startMs = performance.now();
  const response = await fetch(`${url}/api/v3/areas/import`, {
    method: 'POST',
    headers: { ...headers, 'Content-Type': 'application/geo+json' },
    body: bytes,
  });
  const text = await response.text();
  const seconds = (performance.now() - startMs) / 1_000;
  const { data } = JSON.parse(text) as { data?: { created: unknown[] } };
  if (response.status !== 201 || data?.created.length !== features) {
    throw new Error(`the import was answered with ${response.status}: ${text.slice(0, 500)}`);
  }
  return seconds;
}

function makeBody(features: number, vertices: number): Buffer<ArrayBuffer> {
  const places = placesOf('towns', 100 + made++, features);
  const collection = {
    type: 'FeatureCollection',
    features: Array.from({ length: features }, (_, n) => {
      const centre = { lat: places[2 * n]!, lng: Math.max(-179, Math.min(179, places[2 * n + 1]!)) };
      const ring = jaggedRing(vertices, centre, RADIUS_DEG, n).map(({ lat, lng }) => [lng, lat]);
      const geometry = { type: 'Polygon', coordinates: [[...ring, ring[0]]] };
      return { type: 'Feature', properties: { name: `Feature ${n}` }, geometry };
    }),
  };
  return Buffer.from(JSON.stringify(collection));
}
