import { signal } from '@preact/signals';
import type { ApiCall } from './reply.ts';
import type { Area, LatLng } from './types.ts';

export type AreaType = Area['type'];

/** The body of POST /areas and PATCH /areas/{id}. The API leaves out what is null or belongs to another type. */
export interface AreaBody {
  readonly name: string;
  readonly type: AreaType;
  /** Set for circles and places. */
  readonly center: LatLng | null;
  /** Set for circles and places. */
  readonly radius_m: number | null;
  /** Set for tracks. */
  readonly buffer_m: number | null;
  /** The vertices of polygons (without a closing repetition) and tracks. */
  readonly points: readonly LatLng[];
  readonly dwell_seconds: number;
  /** #rrggbb. */
  readonly color: string;
  /** Null: none. */
  readonly external_id: string | null;
}

export interface AreaDraft {
  /** The id of the edited area; null for a new one. */
  readonly id: number | null;
  readonly body: AreaBody;
}

const NEW: AreaBody = {
  name: '',
  type: 'circle',
  center: null,
  radius_m: 200,
  buffer_m: 50,
  points: [],
  dwell_seconds: 0,
  color: '#3b82f6',
  external_id: null,
};

/** The area that is being made or edited, as the form and the map show and change it; null: none. */
export const areaDraft = signal<AreaDraft | null>(null);

/** Begins a new area, or the editing of `area`. What was begun before is given up. */
export function beginDraft(area: Area | null = null): void {
  areaDraft.value = area === null ? { id: null, body: NEW } : { id: area.id, body: bodyOf(area) };
}

/** Changes what is sent; the rest stays. Without a draft nothing happens. */
export function changeDraft(change: Partial<AreaBody>): void {
  const draft = areaDraft.value;
  if (draft !== null) areaDraft.value = { ...draft, body: { ...draft.body, ...change } };
}

/** Ends the draft, saved or given up. */
export function endDraft(): void {
  areaDraft.value = null;
  sent = null;
}

/** The call that saves a draft. Where its answer was lost, a new area is not made twice by sending it again. */
export function saveCall({ id, body }: AreaDraft): ApiCall {
  if (id !== null) return { method: 'PATCH', path: `/api/v1/areas/${id}`, body };
  const json = JSON.stringify(body);
  if (sent?.json !== json) sent = { json, idempotencyKey: newKey() };
  return { method: 'POST', path: '/api/v1/areas', body, idempotencyKey: sent.idempotencyKey };
}

/** The body of a new area with the key that belongs to it. */
let sent: { readonly json: string; readonly idempotencyKey: string } | null = null;

/** Not crypto.randomUUID, which a page has on https and localhost alone. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) =>
    byte.toString(16).padStart(2, '0'),
  ).join('');
}

/** An area as it would be sent. */
function bodyOf(area: Area): AreaBody {
  const { name, type, center, points, dwell_seconds, color, external_id } = area;
  return {
    name,
    type,
    center: type === 'circle' || type === 'point' ? center : null, // of others it is computed
    radius_m: area.radius_m ?? NEW.radius_m,
    buffer_m: area.buffer_m ?? NEW.buffer_m,
    points,
    dwell_seconds,
    color,
    external_id,
  };
}
