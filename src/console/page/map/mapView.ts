import { effect } from '@preact/signals';
import {
  type MapGeoJSONFeature,
  Map as MapLibre,
  type MapMouseEvent,
  type PointLike,
  prewarm,
  ScaleControl,
  type StyleSpecification,
  setWorkerUrl,
} from 'maplibre-gl';
import type { StatusCounts } from '../filters.ts';
import { units } from '../format.ts';
import { isLarge, view } from '../largeFleet.ts';
import { fleet, nameOfImei, shownFleet } from '../liveFleet.ts';
import type { LatLng } from '../types.ts';
import { areaBounds, boundsOf } from './areaShapes.ts';
import { baseNames, baseStyle, baseTiles, vehicleColors } from './baseStyle.ts';
import { boxOf } from './box.ts';
import { clickDraft, editDraft } from './draftOnMap.ts';
import { drawAreas } from './drawAreas.ts';
import { drawClusters } from './drawClusters.ts';
import { Camera, centreInFreePart } from './freePart.ts';
import {
  choose,
  chosen,
  chosenArea,
  clustered,
  day,
  drawnAreas,
  isFollowing,
  mapError,
  onSpot,
  otherDay,
  sought,
  soughtArea,
} from './mapState.ts';
import {
  AREA_LAYERS,
  areasOverlay,
  CLUSTER_LAYERS,
  clustersOverlay,
  draftOverlay,
  SPOT_LAYERS,
  spotOverlay,
  trailOverlay,
} from './overlay.ts';
import { onScheme, type Scheme, scheme } from './scheme.ts';
import { clusterText } from './shares.ts';
import { tracksLayer } from './tracks.ts';
import { drawTrail } from './trail.ts';
import { drawSpot } from './vehicles/drawSpot.ts';
import { sizePxAt, worldPxOf } from './vehicles/vehicleDrawing.ts';
import { VehicleLabels } from './vehicles/vehicleLabels.ts';
import { VehicleLayer } from './vehicles/vehicleLayer.ts';
import { type Near, type SizePx, VehicleTable } from './vehicles/vehicleTable.ts';
import { drawGraticule, worldStyle } from './worldStyle.ts';

const STREET_ZOOM = 14;
/** From here on vehicles of a city are so far apart that most names have their place. */
const LABELS_ZOOM = 12;
const FIT_ZOOM_MAX = 13;
/** The map has been sent elsewhere: it does not go back to the fleet that comes in. */
const NOWHERE = '';
/** An area that is smaller on the map is not seen. */
const SPECK_PX = 40;
/** How much closer a click on a cluster looks. */
const CLOSER_ZOOMS = 2;
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
  readonly #layer = new VehicleLayer(
    this.#table,
    () => vehicleColors(scheme()),
    nowSeconds,
    (size) => this.#drawn(size),
  );
  readonly #labels = new VehicleLabels(this.#table, nameOfImei, LABELS_ZOOM);
  readonly #overlays = {
    areas: areasOverlay(),
    trail: trailOverlay(),
    clusters: clustersOverlay(),
    spot: spotOverlay(),
    draft: draftOverlay(),
  };
  readonly #label: SpotLabel;
  readonly #sent: Camera;
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
    const scale = new ScaleControl();
    this.map.addControl(scale, 'bottom-right');
    this.#stops.push(units.subscribe((unit) => scale.setUnit(unit === 'mi' ? 'imperial' : 'metric')));
    this.#label = new SpotLabel(element);
    this.#fitted.camera = this.#camera();
    this.#labels.addTo(this.map);
    this.#layer.addTo(this.map);
    this.#stops.push(
      centreInFreePart(this.map, (isFlying) => {
        if (isFlying) this.#sent.flyAgain();
        if (!isLarge.peek()) this.#fit(this.#table.places(nowSeconds()));
      }),
    );
    this.#sent = new Camera(this.map); // with each new size the free part is known first
    this.#connect();
  }

  /** The vehicles that have their names beside them. */
  get labelled(): readonly string[] {
    return this.#labels.shown;
  }

  /** Where a vehicle is shown: on the earth, in the world nearest to the centre, and in pixels of the map. */
  vehicleAt(imei: string): (LatLng & { x: number; y: number }) | null {
    const place = this.#table.placeOf(imei, nowSeconds());
    return place === null ? null : this.#project(place);
  }

  close(): void {
    view.value = null;
    for (const stop of this.#stops) stop();
    this.#labels.remove();
    this.#layer.remove();
    this.map.remove();
  }

  #connect(): void {
    const { map } = this;
    if (baseTiles === null) drawGraticule(map, scheme);
    const tracks = tracksLayer(map);
    map.on('style.load', () => {
      tracks.add();
      for (const overlay of Object.values(this.#overlays)) overlay.add(map);
      // Above areas, but they give way to the names of these.
      for (const layer of baseNames(map, scheme())) map.addLayer(layer, 'area-name');
    });
    this.#replaceMissingStyle();
    map.on('mousemove', (event) => this.#label.point(event.point, () => this.#linesAt(event)));
    map.on('mouseout', () => this.#label.hide());
    map.on('click', (event) => this.#click(event));
    const release = (): void => {
      isFollowing.value = false;
    };
    map.on('dragstart', release);
    map.on('movestart', ({ originalEvent }) => {
      if (originalEvent instanceof KeyboardEvent) release();
    });
    const rest = (): void => {
      if (map.getContainer().clientWidth === 0) return; // another view is shown
      const [[west, south], [east, north]] = map.getBounds().toArray();
      view.value = { box: boxOf({ west, south, east, north }), zoom: map.getZoom() };
    };
    map.on('moveend', rest);
    map.on('resize', rest);
    rest();
    this.#stops.push(
      onScheme(() => map.setStyle(this.#style(scheme()), { diff: false })),
      shownFleet.listen((changed) => {
        const now = nowSeconds();
        for (const device of changed) {
          if ('removed' in device) this.#table.remove(device.imei);
          else this.#table.put(device, now, Date.now());
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
        if (sought.value === null) return;
        fleet.round.value; // once more with each round, until its place is known
        if (this.#show(sought.value)) sought.value = null;
      }),
      effect(() => {
        fleet.round.value; // once more with each round, while the fleet comes in
        if (!isLarge.peek() && fleet.size !== this.#fitted.devices)
          this.#fit(this.#table.places(nowSeconds()));
      }),
      effect(() => {
        const bounds = boundsOf([day.value, otherDay.value].flatMap((shown) => shown?.points ?? []));
        if (bounds === null) return;
        this.#fitted.camera = NOWHERE;
        this.#sent.onceShown(() => this.#sent.goTo(bounds, STREET_ZOOM));
      }),
      effect(() => {
        const id = soughtArea.value;
        if (id !== null && this.#showArea(id)) soughtArea.value = null;
      }),
      tracks.close,
      drawAreas(this.#overlays.areas),
      drawTrail(this.#overlays.trail),
      drawSpot(map, this.#overlays.spot, (imei) => this.#table.placeOf(imei, nowSeconds())),
      drawClusters(map, this.#overlays.clusters, (places) => this.#fit(places)),
      editDraft(map, this.#overlays.draft),
    );
  }

  /** Vehicles do not wait for the style of another host that does not come. */
  #replaceMissingStyle(): void {
    if (baseTiles === null || !('styleUrl' in baseTiles)) return;
    const { host } = new URL(baseTiles.styleUrl);
    const replace = (): void => {
      mapError.value = `The base map of ${host} cannot be loaded. The world without streets is shown instead.`;
      this.#style = worldStyle;
      this.map.setStyle(worldStyle(scheme()));
    };
    this.map.once('error', replace);
    this.map.once('style.load', () => this.map.off('error', replace));
  }

  /** Shows all of these places while the fleet comes in, unless the map was moved. */
  #fit(places: Iterable<LatLng>): void {
    if (this.#camera() !== this.#fitted.camera) return;
    const bounds = boundsOf([...places]);
    if (bounds === null) return;
    this.map.fitBounds(bounds, { padding: 40, maxZoom: FIT_ZOOM_MAX, animate: false });
    this.#fitted = { devices: fleet.size, camera: this.#camera() };
  }

  #camera(): string {
    const { lng, lat } = this.map.getCenter();
    return [lng, lat, this.map.getZoom()].join();
  }

  /** Whether it is known where the vehicle is. */
  #show(imei: string): boolean {
    const location = fleet.get(imei)?.location ?? null;
    // One that the filters hide is not drawn.
    const hidden = location === null ? null : { lng: location.longitude, lat: location.latitude };
    const place = this.#table.placeOf(imei, nowSeconds()) ?? hidden;
    if (place === null) return false;
    this.#fitted.camera = NOWHERE;
    const zoom = Math.max(STREET_ZOOM, this.map.getZoom());
    this.#sent.fly(() => this.map.flyTo({ center: place, zoom, essential: false }));
    return true;
  }

  /** Moves the map to an area that is out of sight. Whether it is known where the area is. */
  #showArea(id: number): boolean {
    const area = drawnAreas.value.areas.find((one) => one.id === id);
    const bounds = area === undefined ? null : areaBounds(area);
    if (bounds === null) return false;
    const [west, south, east, north] = bounds;
    this.#sent.onceShown(() => {
      const { x, y } = this.#project({ lng: (west + east) / 2, lat: (south + north) / 2 });
      const { top, right, bottom } = this.#sent.free;
      const widthPx = (worldPxOf(this.map) * (east - west)) / 360;
      const heightPx =
        this.#project({ lng: west, lat: south }).y - this.#project({ lng: west, lat: north }).y;
      const isSpeck = Math.max(widthPx, heightPx) < SPECK_PX;
      const isInSight = !isSpeck && x >= 0 && y >= top && x <= right && y <= bottom;
      if (!isInSight) this.#sent.goTo(bounds, STREET_ZOOM);
    });
    return true;
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

  /** What is under the pointer. */
  #linesAt({ lngLat, point }: MapMouseEvent): readonly string[] {
    const { count, imeis } = this.#near(lngLat);
    const cluster = this.#clusterAt(point);
    if (count === 0) return cluster === undefined ? [] : [textOf(cluster.properties)];
    const names = imeis.slice(0, NAMES_MAX).map((imei) => nameOfImei(imei));
    return count > names.length ? [...names, `and ${count - names.length} more`] : names;
  }

  #clusterAt(point: PointLike): MapGeoJSONFeature | undefined {
    const { map } = this;
    if (clustered.peek() === null || map.getLayer('cluster') === undefined) return undefined;
    return map.queryRenderedFeatures(point, { layers: CLUSTER_LAYERS })[0];
  }

  /** The IMEI of a vehicle of the ring around a spot. */
  #onRing(point: PointLike): string | null {
    if (onSpot.peek() === null) return null;
    const [found] = this.map.queryRenderedFeatures(point, { layers: SPOT_LAYERS });
    return (found?.properties['imei'] as string | undefined) ?? null;
  }

  #click(event: MapMouseEvent): void {
    if (clickDraft(this.map, event)) return;
    const { lngLat, point } = event;
    const onRing = this.#onRing(point);
    if (onRing !== null) {
      choose(onRing);
      return;
    }
    const cluster = this.#clusterAt(point);
    if (cluster !== undefined) {
      const imei = cluster.properties['imei'] as string | undefined;
      if (imei !== undefined) choose(imei);
      else this.map.easeTo({ center: lngLat, zoom: this.map.getZoom() + CLOSER_ZOOMS });
      return;
    }
    const near = this.#near(lngLat);
    onSpot.value = near.count > 1 ? near : null;
    if (near.count === 1) choose(near.imeis[0] ?? null);
    if (near.count > 0) return;
    const [area] = this.map.queryRenderedFeatures(point, { layers: AREA_LAYERS });
    chosenArea.value = (area?.properties['id'] as number | undefined) ?? null;
  }

  #drawn(size: SizePx): void {
    this.#labels.draw(this.map, size, nowSeconds(), chosen.peek(), () => this.#layer.repaint());
    this.#follow();
  }

  #follow(): void {
    if (!isFollowing.peek() || chosen.peek() === null || this.map.isZooming()) return;
    const at = this.vehicleAt(chosen.peek() as string);
    if (at === null) return;
    const { x, y } = this.map.project(this.map.getCenter());
    if (Math.hypot(at.x - x, at.y - y) > FOLLOW_MIN_PX) this.map.jumpTo({ center: at });
  }
}

/** The label of a cluster, or of a vehicle that was read from a tile. */
function textOf(properties: Readonly<Record<string, unknown>>): string {
  return (properties['name'] as string | undefined) ?? clusterText(properties as StatusCounts);
}

const NAMES_MAX = 5;

/** What is under the pointer, beside it. */
class SpotLabel {
  readonly #element = document.createElement('div');
  #frame: number | null = null;
  #look: (() => void) | null = null;

  constructor(map: HTMLElement) {
    this.#element.className = 'spot-label';
    this.#element.hidden = true;
    map.append(this.#element);
  }

  /** The pointer is there; `lines` is asked at most once a frame. */
  point({ x, y }: { x: number; y: number }, lines: () => readonly string[]): void {
    this.#look = () => this.#show(x, y, lines());
    this.#frame ??= requestAnimationFrame(() => {
      this.#frame = null;
      this.#look?.();
    });
  }

  hide(): void {
    this.#look = null;
    this.#element.hidden = true;
  }

  #show(x: number, y: number, lines: readonly string[]): void {
    this.#element.hidden = lines.length === 0;
    this.#element.textContent = lines.join('\n');
    this.#element.style.translate = `${x + 14}px ${y + 14}px`;
  }
}
