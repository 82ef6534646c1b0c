import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { html } from '../html.ts';
import { mapError } from './mapState.ts';
import type { MapView } from './mapView.ts';

const NO_WEBGL =
  'This browser cannot draw the map: it has no WebGL 2, or it is switched off. The lists show the same vehicles.';

/** The element; `view` is set while there is a map. Programs that test the page may ask it where a vehicle is shown. */
interface MapElement extends HTMLElement {
  view?: MapView;
}

/** The map. It stays while other views are shown, and is then hidden. */
export function MapPane({ isShown }: { isShown: boolean }): VNode {
  const place = useRef<MapElement>(null);
  useEffect(() => {
    const element = place.current;
    if (element === null) return;
    let isOpen = true;
    void openMap(element, () => isOpen);
    return () => {
      isOpen = false;
      element.view?.close();
      delete element.view;
    };
  }, []);
  return html`<div class="map-pane" hidden=${!isShown}>
    ${mapError.value !== null && html`<p class="empty" role="status">${mapError.value}</p>`}
    <div class="map" ref=${place}></div>
  </div>`;
}

async function openMap(element: MapElement, isOpen: () => boolean): Promise<void> {
  mapError.value = null;
  try {
    const { MapView } = await import('./mapView.ts');
    if (isOpen()) element.view = new MapView(element);
  } catch (error) {
    const { name, message } = error as Error;
    mapError.value =
      name === 'GPUInitializationError' ? NO_WEBGL : `The map does not start: ${message}. Reload the page.`;
  }
}
