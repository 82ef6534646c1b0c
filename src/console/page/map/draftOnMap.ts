import { effect } from '@preact/signals';
import type { Feature } from 'geojson';
import type { Map as MapLibre, MapMouseEvent, MapTouchEvent } from 'maplibre-gl';
import {
  type AreaBody,
  areaDraft,
  beginStep,
  changeDraft,
  draftVertex,
  removeVertex,
  undoStep,
} from '../areaDraft.ts';
import type { LatLng } from '../types.ts';
import { areaFeature, destination, distanceM } from './areaShapes.ts';
import { boxOf } from './box.ts';
import { drawnAreas } from './mapState.ts';
import type { Overlay } from './overlay.ts';
import { snapped, verticesIn } from './snap.ts';
import { worldPxOf } from './vehicles/vehicleDrawing.ts';

/** A finger is broad. */
const HIT_PX = 14;

type Pointer = MapMouseEvent | MapTouchEvent;

/** Draws the draft of an area, until the returned function is called, and lets the pointer and keys change it. */
export function editDraft(map: MapLibre, overlay: Overlay): () => void {
  let grabbed: { readonly handle: Handle; readonly vertices: readonly LatLng[] } | null = null;
  let isMoved = false;
  const hold = (event: Pointer): void => {
    const handle = isOneFinger(event) && !isOtherButton(event) ? handleAt(map, event) : null;
    if (handle === null) return;
    grabbed = { handle, vertices: snapVertices(map, handle) };
    isMoved = false;
    event.preventDefault(); // the map stays where it is
  };
  const drag = ({ lngLat }: Pointer): void => {
    const body = areaDraft.peek()?.body;
    if (grabbed === null || body === undefined) return;
    if (!isMoved) beginStep();
    isMoved = true;
    const { handle, vertices } = grabbed;
    const to = handle === 'rim' ? lngLat : snapped(lngLat, vertices, worldPxOf(map));
    changeDraft(dragged(body, handle, to));
  };
  const drop = (): void => {
    grabbed = null;
  };
  const remove = (event: MapMouseEvent): void => {
    const handle = handleAt(map, event);
    if (typeof handle !== 'number') return;
    draftVertex.value = handle;
    removeVertex();
  };
  const press = (event: KeyboardEvent): void => {
    if (areaDraft.peek() === null || isTyped(event.target)) return;
    const isUndo = event.key === 'z' && (event.ctrlKey || event.metaKey);
    const isRemoval = event.key === 'Delete' || event.key === 'Backspace';
    if (!isUndo && !isRemoval) return;
    event.preventDefault();
    if (isUndo) undoStep();
    else removeVertex();
  };
  map.on('mousedown', hold);
  map.on('touchstart', hold);
  map.on('mousemove', drag);
  map.on('touchmove', drag);
  map.on('mouseup', drop);
  map.on('touchend', drop);
  map.on('touchcancel', drop);
  map.on('contextmenu', remove);
  addEventListener('keydown', press);
  const stop = effect(() => {
    const draft = areaDraft.value;
    map.getCanvas().style.cursor = draft === null ? '' : 'crosshair';
    overlay.show(draft === null ? [] : featuresOf(draft.body, draftVertex.value));
  });
  return () => {
    removeEventListener('keydown', press);
    stop();
  };
}

/** A click while there is a draft; false without one. */
export function clickDraft(map: MapLibre, event: MapMouseEvent): boolean {
  const body = areaDraft.peek()?.body;
  if (body === undefined) return false;
  const handle = handleAt(map, event);
  const isClosing = handle === 0 && body.type === 'polyline' && body.points.length > 2;
  if (handle !== null && !isClosing) {
    draftVertex.value = typeof handle === 'number' ? handle : null;
    return true;
  }
  beginStep();
  const at = snapped(event.lngLat, snapVertices(map, null), worldPxOf(map));
  changeDraft(clicked(body, at));
  const { points } = areaDraft.peek()?.body ?? body;
  draftVertex.value = points.length > body.points.length ? points.length - 1 : null;
  return true;
}

/** Vertices of other areas in view, and of a track the first one, where it may close. */
function snapVertices(map: MapLibre, handle: Handle | null): LatLng[] {
  const draft = areaDraft.peek();
  if (draft === null) return [];
  const { type, points } = draft.body;
  const [first] = points;
  const own = type === 'polyline' && points.length > 2 && handle !== 0 && first !== undefined ? [first] : [];
  const [[west, south], [east, north]] = map.getBounds().toArray();
  return [...own, ...verticesIn(drawnAreas.peek().areas, draft.id, boxOf({ west, south, east, north }))];
}

/** Keys mean text there. */
function isTyped(target: EventTarget | null): boolean {
  return target instanceof HTMLElement && target.closest('input, textarea, select') !== null;
}

/** The one that opens a menu moves nothing: a map whose event was prevented would not tell of it. */
function isOtherButton({ originalEvent }: Pointer): boolean {
  return originalEvent instanceof MouseEvent && originalEvent.button !== 0;
}

function isOneFinger(event: Pointer): boolean {
  return !('points' in event) || event.points.length === 1;
}

function handleAt(map: MapLibre, { point, lngLat }: Pointer): Handle | null {
  const body = areaDraft.peek()?.body;
  if (body === undefined) return null;
  let nearest: Handle | null = null;
  let leastPx = HIT_PX;
  for (const [handle, at] of handlesOf(body)) {
    const px = map.project(beside(at, lngLat)).dist(point);
    if (px > leastPx) continue;
    leastPx = px;
    nearest = handle;
  }
  return nearest;
}

/** The place in the world that the pointer is in. */
function beside({ lng, lat }: LatLng, pointer: LatLng): LatLng {
  return { lng: lng + 360 * Math.round((pointer.lng - lng) / 360), lat };
}

function featuresOf(body: AreaBody, chosen: number | null): Feature[] {
  const shape = areaFeature(body, { kind: 'shape', color: body.color });
  const handles = handlesOf(body).map(
    ([handle, { lng, lat }]): Feature => ({
      type: 'Feature',
      properties: { kind: 'handle', handle, isChosen: handle === chosen },
      geometry: { type: 'Point', coordinates: [lng, lat] },
    }),
  );
  return shape === null ? handles : [shape, ...handles];
}

/** What of a draft can be dragged: a vertex by its number, the centre of a circle, or its rim. */
type Handle = number | 'center' | 'rim';

/** Six decimals of a degree are a tenth of a metre. */
const DECIMALS = 6;
const EAST_DEG = 90;

/** Every handle and where it is. */
export function handlesOf({ type, center, radius_m, points }: AreaBody): [Handle, LatLng][] {
  if (type === 'polygon' || type === 'polyline') return points.map((point, index) => [index, point]);
  if (center === null) return [];
  const rim: [Handle, LatLng][] = radius_m === null ? [] : [['rim', destination(center, radius_m, EAST_DEG)]];
  return [...rim, ['center', center]];
}

/** The draft after a click: one vertex more, or the centre there. */
export function clicked({ type, points }: AreaBody, at: LatLng): Partial<AreaBody> {
  const isOfPoints = type === 'polygon' || type === 'polyline';
  return isOfPoints ? { points: [...points, plain(at)] } : { center: plain(at) };
}

/** The draft after a handle was dragged there. */
export function dragged({ center, points }: AreaBody, handle: Handle, to: LatLng): Partial<AreaBody> {
  if (handle === 'center') return { center: plain(to) };
  if (handle === 'rim')
    return center === null ? {} : { radius_m: Math.max(1, Math.round(distanceM(center, to))) };
  return { points: points.with(handle, plain(to)) };
}

function plain({ lat, lng }: LatLng): LatLng {
  const round = (degrees: number): number => Number(degrees.toFixed(DECIMALS));
  return { lat: round(lat), lng: round(lng - 360 * Math.round(lng / 360)) };
}
