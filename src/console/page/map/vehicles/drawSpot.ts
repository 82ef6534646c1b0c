import { effect } from '@preact/signals';
import type { Feature } from 'geojson';
import type { Map as MapLibre } from 'maplibre-gl';
import { fleet, nameOfImei } from '../../liveFleet.ts';
import type { LatLng } from '../../types.ts';
import { vehicleColors } from '../baseStyle.ts';
import { chosen, onSpot } from '../mapState.ts';
import type { Overlay } from '../overlay.ts';
import { scheme } from '../scheme.ts';
import { colorOf } from '../shares.ts';
import { ringAround } from './labels.ts';

/** Draws the vehicles on the spot that was clicked as a ring around it, until the returned function is called. */
export function drawSpot(
  map: MapLibre,
  overlay: Overlay,
  placeOf: (imei: string) => LatLng | null,
): () => void {
  const draw = (): void => {
    const imeis = onSpot.value?.imeis ?? [];
    const middle = placeOf(imeis[0] ?? '');
    if (middle === null) {
      overlay.show([]);
      return;
    }
    const { x, y } = map.project(middle);
    const ring = ringAround(imeis.length);
    overlay.show(
      imeis.flatMap((imei, n): Feature[] => {
        const by = ring[n] as (typeof ring)[number];
        const place = map.unproject([x + by.x, y + by.y]);
        const status = fleet.get(imei)?.status ?? 'unknown';
        const color = colorOf(status, vehicleColors(scheme()));
        const properties = { imei, name: nameOfImei(imei), color, isChosen: imei === chosen.value };
        return [
          feature({}, { type: 'LineString', coordinates: [[middle.lng, middle.lat], place.toArray()] }),
          feature(properties, { type: 'Point', coordinates: place.toArray() }),
        ];
      }),
    );
  };
  const zoomed = (): void => {
    if (onSpot.peek() !== null) draw();
  };
  map.on('zoom', zoomed);
  const stop = effect(draw);
  return () => {
    map.off('zoom', zoomed);
    stop();
  };
}

function feature(properties: Feature['properties'], geometry: Feature['geometry']): Feature {
  return { type: 'Feature', properties, geometry };
}
