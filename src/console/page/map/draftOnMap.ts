import { effect } from '@preact/signals';
import type { Feature } from 'geojson';
import type { Map as MapLibre, MapMouseEvent, MapTouchEvent } from 'maplibre-gl';
import { type AreaBody, areaDraft, changeDraft } from '../areaDraft.ts';
import type { LatLng } from '../types.ts';
import { areaFeature, destination, distanceM } from './areaShapes.ts';
import type { Overlay } from './overlay.ts';

/** A finger is broad. */
const HIT_PX = 14;

type Pointer = MapMouseEvent | MapTouchEvent;

/** Draws the draft of an area, until the returned function is called, and lets the pointer change it. */
export function editDraft(map: MapLibre, overlay: Overlay): () => void {
  let grabbed: Handle | null = null;
  const hold = (event: Pointer): void => {
    grabbed = isOneFinger(event) ? handleAt(map, event) : null;
    if (grabbed !== null) event.preventDefault(); // the map stays where it is
  };
  const drag = ({ lngLat }: Pointer): void => {
    const body = areaDraft.peek()?.body;
    if (grabbed !== null && body !== undefined) changeDraft(dragged(body, grabbed, lngLat));
  };
  const drop = (): void => {
    grabbed = null;
  };
  map.on('mousedown', hold);
  map.on('touchstart', hold);
  map.on('mousemove', drag);
  map.on('touchmove', drag);
  map.on('mouseup', drop);
  map.on('touchend', drop);
  map.on('touchcancel', drop);
  return effect(() => {
    const draft = areaDraft.value;
    map.getCanvas().style.cursor = draft === null ? '' : 'crosshair';
    overlay.show(draft === null ? [] : featuresOf(draft.body));
  });
}

/** A click while there is a draft; false without one. */
export function clickDraft(map: MapLibre, event: MapMouseEvent): boolean {
  const body = areaDraft.peek()?.body;
  if (body === undefined) return false;
  if (handleAt(map, event) === null) changeDraft(clicked(body, event.lngLat));
  return true;
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

function featuresOf(body: AreaBody): Feature[] {
  const shape = areaFeature(body, { kind: 'shape', color: body.color });
  const handles = handlesOf(body).map(
    ([handle, { lng, lat }]): Feature => ({
      type: 'Feature',
      properties: { kind: 'handle', handle },
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
