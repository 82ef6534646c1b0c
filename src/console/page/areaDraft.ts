import { computed, signal } from '@preact/signals';
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
  forgetSteps();
  areaDraft.value = area === null ? { id: null, body: NEW } : { id: area.id, body: bodyOf(area) };
}

/** Changes what is sent; the rest stays. Without a draft nothing happens. */
export function changeDraft(change: Partial<AreaBody>): void {
  const draft = areaDraft.value;
  if (draft !== null) areaDraft.value = { ...draft, body: { ...draft.body, ...change } };
}

/** The part of a draft that an undo restores. Names and other fields stay as they are. */
type Geometry = Pick<AreaBody, 'type' | 'center' | 'radius_m' | 'points'>;

const STEPS_MAX = 100;
/** The geometries before each step of drawing, the oldest first. */
const steps = signal<readonly Geometry[]>([]);
export const canUndo = computed(() => steps.value.length > 0);
/** The vertex of the draft that was chosen, by its number; null: none. */
export const draftVertex = signal<number | null>(null);

/** The changes from now on are a step that can be undone. */
export function beginStep(): void {
  const draft = areaDraft.peek();
  if (draft === null) return;
  const { type, center, radius_m, points } = draft.body;
  steps.value = [...steps.peek().slice(1 - STEPS_MAX), { type, center, radius_m, points }];
}

/** The geometry as it was before the last step; without one nothing happens. */
export function undoStep(): void {
  const before = steps.peek().at(-1);
  if (before === undefined) return;
  steps.value = steps.peek().slice(0, -1);
  draftVertex.value = null;
  changeDraft(before);
}

/** Takes the chosen vertex away; then the one before it is chosen. */
export function removeVertex(): void {
  const points = areaDraft.peek()?.body.points ?? [];
  const vertex = draftVertex.peek();
  if (vertex === null || vertex >= points.length) return;
  beginStep();
  draftVertex.value = points.length === 1 ? null : Math.max(0, vertex - 1);
  changeDraft({ points: points.toSpliced(vertex, 1) });
}

function forgetSteps(): void {
  steps.value = [];
  draftVertex.value = null;
}

/** Ends the draft, saved or given up. */
export function endDraft(): void {
  forgetSteps();
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
