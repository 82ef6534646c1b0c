import type { LatLng } from '../../geo/wgs84.ts';
import { integer, number, type Schema, shapeOf } from './schema.ts';

export const LATITUDE: Schema = { type: 'number', minimum: -90, maximum: 90 };
export const LONGITUDE: Schema = { type: 'number', minimum: -180, maximum: 180 };

/** A position in the body of an area or an event. */
export const LAT_LNG: Schema = shapeOf<LatLng>({ lat: LATITUDE, lng: LONGITUDE });

/** Of areas, events, webhooks and commands. */
export const ID: Schema = integer(undefined, {
  format: 'int64',
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
});

const PAGINATION: Schema = shapeOf<{ limit: number; offset: number; count: number }>({
  limit: integer('As it was used.', { minimum: 1 }),
  offset: integer('As it was used.', { minimum: 0 }),
  count: integer('How many items are on this page.', { minimum: 0 }),
});

/** `{ data, meta }`. */
export function envelope(
  data: Schema,
  meta: Schema = { type: 'object', description: 'Empty here.' },
): Schema {
  return shapeOf<{ data: unknown; meta: unknown }>({ data, meta });
}

/** `{ data, meta: { pagination } }` of a list. */
export function page(items: Schema, more: Readonly<Record<string, Schema>> = {}): Schema {
  return envelope({ type: 'array', items }, pageMeta(more));
}

export function pageMeta(more: Readonly<Record<string, Schema>> = {}): Schema {
  return shapeOf<Record<string, unknown>>({ pagination: PAGINATION, ...more });
}

export const SPEED_KMH = number('Kilometres per hour.', { minimum: 0 });
