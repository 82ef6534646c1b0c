import { effect } from '@preact/signals';
import type { Feature } from 'geojson';
import type { Map as MapLibre, MapMouseEvent, MapTouchEvent } from 'maplibre-gl';
import { type AreaBody, areaDraft, changeDraft } from '../areaDraft.ts';
import type { LatLng } from '../types.ts';
import { areaFeature } from './areaShapes.ts';
import { clicked, dragged, type Handle, handlesOf } from './draftShape.ts';
import type { Overlay } from './overlay.ts';

/** A finger is broad. */
const HIT_PX = 14;

type Pointer = MapMouseEvent | MapTouchEvent;

/** Draws the draft of an area, until the returned function is called, and lets the pointer change it. */
export function editDraft(map: MapLibre, overlay: Overlay): () => void {
  let held: Handle | null = null;
  const hold = (event: Pointer): void => {
    held = isOneFinger(event) ? handleAt(map, event) : null;
    if (held !== null) event.preventDefault(); // the map stays where it is
  };
  const drag = ({ lngLat }: Pointer): void => {
    const body = areaDraft.peek()?.body;
    if (held !== null && body !== undefined) changeDraft(dragged(body, held, lngLat));
  };
  const drop = (): void => {
    held = null;
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
