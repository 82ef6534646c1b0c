import { effect } from '@preact/signals';
import {
  Map as MapLibre,
  type MapMouseEvent,
  prewarm,
  ScaleControl,
  type StyleSpecification,
  setWorkerUrl,
} from 'maplibre-gl';
import { nameOf } from '../fleet.ts';
import { fleet, shownFleet } from '../liveFleet.ts';
import type { LatLng } from '../types.ts';
import { areaBounds, boundsOf } from './areaShapes.ts';
import {
  baseStyle,
  baseTiles,
  onScheme,
  type Scheme,
  scheme,
  vehicleColors,
  worldStyle,
} from './baseStyle.ts';
import { clickDraft, editDraft } from './draftOnMap.ts';
import { drawAreas } from './drawAreas.ts';
import { choose, chosen, chosenArea, drawnAreas, isFollowing, mapError, onSpot, sought } from './mapState.ts';
import { AREA_LAYERS, areasOverlay, draftOverlay, trailOverlay } from './overlay.ts';
import { drawTrail } from './trail.ts';
import { sizePxAt, worldPxOf } from './vehicleDrawing.ts';
import { VehicleLayer } from './vehicleLayer.ts';
import { type Near, VehicleTable } from './vehicleTable.ts';

const STREET_ZOOM = 14;
const FIT_ZOOM_MAX = 13;
/** A click is rarely exact. */
const SLACK_PX = 4;
/** The camera follows in steps that are seen. */
const FOLLOW_MIN_PX = 0.3;

const nowSeconds = (): number => performance.now() / 1_000;
const still = matchMedia('(prefers-reduced-motion: reduce)');

setWorkerUrl(import.meta.resolve('maplibre-gl/worker'));
prewarm(); // the worker loads while the page is built

/** The map in an element, until `close`. */
export class MapView {
  readonly map: MapLibre;
  readonly #table = new VehicleTable(still.matches);
  readonly #layer = new VehicleLayer(this.#table, vehicleColors(scheme()), nowSeconds, () => this.#follow());
  readonly #overlays = { areas: areasOverlay(), trail: trailOverlay(), draft: draftOverlay() };
  readonly #label: SpotLabel;
  readonly #stops: (() => void)[] = [];
  #style: (scheme: Scheme) => StyleSpecification | string = baseStyle;
  /** How many devices were fitted into the view, and how it was then. */
  #fitted = { devices: 0, camera: '' };

  constructor(element: HTMLElement) {
    this.map = new MapLibre({
      container: element,
      style: baseStyle(scheme()),
      center: [10, 30],
      zoom: 1,
      maxZoom: 20,
      maxPitch: 0,
      dragRotate: false,
      touchPitch: false,
      attributionControl: baseTiles === null ? false : { compact: false },
      fadeDuration: 0,
    });
    this.map.touchZoomRotate.disableRotation();
    this.map.keyboard.disableRotation();
    this.map.addControl(new ScaleControl(), 'bottom-right');
    this.#label = new SpotLabel(element);
    this.#fitted.camera = this.#camera();
    this.#layer.addTo(this.map);
    this.#connect();
  }

  /** Where a vehicle is shown: on the earth, in the world nearest to the centre, and in pixels of the map. */
  vehicleAt(imei: string): (LatLng & { x: number; y: number }) | null {
    const place = this.#table.placeOf(imei, nowSeconds());
    return place === null ? null : this.#project(place);
  }

  close(): void {
    for (const stop of this.#stops) stop();
    this.#layer.remove();
    this.map.remove();
  }

  #connect(): void {
    const { map } = this;
    map.on('style.load', () => {
      for (const overlay of Object.values(this.#overlays)) overlay.add(map);
    });
    this.#replaceMissingStyle();
    map.on('mousemove', (event) => this.#label.point(event.point, () => this.#near(event.lngLat)));
    map.on('mouseout', () => this.#label.hide());
    map.on('click', (event) => this.#click(event));
    const release = (): void => {
      isFollowing.value = false;
    };
    map.on('dragstart', release);
    map.on('movestart', ({ originalEvent }) => {
      if (originalEvent instanceof KeyboardEvent) release();
    });
    const restyle = (): void => {
      this.#layer.colors = vehicleColors(scheme());
      map.setStyle(this.#style(scheme()), { diff: false });
    };
    this.#stops.push(
      onScheme(restyle),
      shownFleet.listen((changed) => {
        const now = nowSeconds();
        for (const device of changed) {
          if ('removed' in device) this.#table.remove(device.imei);
          else this.#table.put(device, now);
        }
        this.#layer.repaint();
      }),
      effect(() => {
        this.#table.choose(chosen.value);
        this.#layer.repaint();
      }),
      effect(() => {
        if (isFollowing.value) this.#layer.repaint();
      }),
      effect(() => {
        if (sought.value !== null) this.#show(sought.value.imei);
      }),
      effect(() => {
        fleet.round.value; // once more with each round, while the fleet comes in
        this.#fit();
      }),
      effect(() => {
        if (chosenArea.value !== null) this.#showArea(chosenArea.value);
      }),
      drawAreas(this.#overlays.areas),
      drawTrail(this.#overlays.trail),
      editDraft(map, this.#overlays.draft),
    );
  }

  /** Vehicles do not wait for the style of another host that does not come. */
  #replaceMissingStyle(): void {
    if (baseTiles === null || !('styleUrl' in baseTiles)) return;
    const { host } = new URL(baseTiles.styleUrl);
    const replace = (): void => {
      mapError.value = `The base map of ${host} cannot be loaded. Coasts and borders are shown instead.`;
      this.#style = worldStyle;
      this.map.setStyle(worldStyle(scheme()));
    };
    this.map.once('error', replace);
    this.map.once('style.load', () => this.map.off('error', replace));
  }

  /** Shows the whole fleet while it comes in, unless the map was moved. */
  #fit(): void {
    if (fleet.size === this.#fitted.devices || this.#camera() !== this.#fitted.camera) return;
    const bounds = boundsOf([...this.#table.places(nowSeconds())]);
    if (bounds === null) return;
    this.map.fitBounds(bounds, { padding: 40, maxZoom: FIT_ZOOM_MAX, animate: false });
    this.#fitted = { devices: fleet.size, camera: this.#camera() };
  }

  #camera(): string {
    const { lng, lat } = this.map.getCenter();
    return [lng, lat, this.map.getZoom()].join();
  }

  #show(imei: string): void {
    const location = fleet.get(imei)?.location ?? null;
    // One that the filters hide is not drawn.
    const hidden = location === null ? null : { lng: location.longitude, lat: location.latitude };
    const place = this.#table.placeOf(imei, nowSeconds()) ?? hidden;
    if (place === null) return;
    this.map.flyTo({ center: place, zoom: Math.max(STREET_ZOOM, this.map.getZoom()), essential: false });
  }

  /** Moves the map to an area that is out of sight. */
  #showArea(id: number): void {
    const area = drawnAreas.peek().areas.find((one) => one.id === id);
    const bounds = area === undefined ? null : areaBounds(area);
    if (bounds === null) return;
    const [west, south, east, north] = bounds;
    const { x, y } = this.#project({ lng: (west + east) / 2, lat: (south + north) / 2 });
    const { clientWidth, clientHeight } = this.map.getCanvas();
    if (x >= 0 && y >= 0 && x <= clientWidth && y <= clientHeight) return;
    this.map.fitBounds(bounds, { padding: 60, maxZoom: STREET_ZOOM });
  }

  #project({ lng, lat }: LatLng): LatLng & { x: number; y: number } {
    const near = lng + 360 * Math.round((this.map.getCenter().lng - lng) / 360);
    const { x, y } = this.map.project([near, lat]);
    return { lng: near, lat, x, y };
  }

  #near(place: LatLng): Near {
    const maxPx = sizePxAt(this.map.getZoom()) / 2 + SLACK_PX;
    return this.#table.near(place, worldPxOf(this.map), maxPx, nowSeconds());
  }

  #click(event: MapMouseEvent): void {
    if (clickDraft(this.map, event)) return;
    const { lngLat, point } = event;
    const near = this.#near(lngLat);
    onSpot.value = near.count > 1 ? near : null;
    if (near.count === 1) choose(near.imeis[0] ?? null);
    if (near.count > 0) return;
    const [area] = this.map.queryRenderedFeatures(point, { layers: AREA_LAYERS });
    chosenArea.value = (area?.properties['id'] as number | undefined) ?? null;
  }

  #follow(): void {
    if (!isFollowing.peek() || chosen.peek() === null || this.map.isZooming()) return;
    const at = this.vehicleAt(chosen.peek() as string);
    if (at === null) return;
    const { clientWidth, clientHeight } = this.map.getCanvas();
    if (Math.hypot(at.x - clientWidth / 2, at.y - clientHeight / 2) > FOLLOW_MIN_PX)
      this.map.jumpTo({ center: at });
  }
}

const NAMES_MAX = 5;

/** The names of the vehicles under the pointer, beside it. */
class SpotLabel {
  readonly #element = document.createElement('div');
  #frame: number | null = null;
  #look: (() => void) | null = null;

  constructor(map: HTMLElement) {
    this.#element.className = 'spot-label';
    this.#element.hidden = true;
    map.append(this.#element);
  }

  /** The pointer is there; `near` is asked at most once a frame. */
  point({ x, y }: { x: number; y: number }, near: () => Near): void {
    this.#look = () => this.#show(x, y, near());
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = null;
      this.#look?.();
    });
  }

  hide(): void {
    this.#look = null;
    this.#element.hidden = true;
  }

  #show(x: number, y: number, { count, imeis }: Near): void {
    this.#element.hidden = count === 0;
    if (count === 0) return;
    const names = imeis
      .slice(0, NAMES_MAX)
      .map((imei) => nameOf(fleet.get(imei) ?? { imei, name: null, plate: null }));
    const more = count > names.length ? [`and ${count - names.length} more`] : [];
    this.#element.textContent = [...names, ...more].join('\n');
    this.#element.style.translate = `${x + 14}px ${y + 14}px`;
  }
}
