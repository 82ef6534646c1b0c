import type { Feature } from 'geojson';
import { Map as MapLibre, setWorkerUrl } from 'maplibre-gl';
import { render, type VNode } from 'preact';
import { Ago, speedText } from './format.ts';
import { boundsOf } from './map/areaShapes.ts';
import { baseNames, baseStyle, baseTiles, vehicleColors } from './map/baseStyle.ts';
import { centreInFreePart } from './map/freePart.ts';
import { sharesOverlay } from './map/overlay.ts';
import { onScheme, scheme } from './map/scheme.ts';
import { VehicleLabels } from './map/vehicles/vehicleLabels.ts';
import { VehicleLayer } from './map/vehicles/vehicleLayer.ts';
import { VehicleTable } from './map/vehicles/vehicleTable.ts';
import { drawGraticule } from './map/worldStyle.ts';
import { html } from './parts.ts';
import type { LatLng, SharedFleet } from './types.ts';

// The page of a share: its vehicles on a map and as a list, as they move, until the link ends.

type SharedDevice = SharedFleet['devices'][number];

const PATH = `/api/share/${location.pathname.split('/').at(-1)}`;
const RETRY_MS = 5_000;
const FIT = { padding: 60, maxZoom: 15 };

/** As on the map of the console, vehicles glide from place to place, unless the person prefers that nothing moves. */
const table = new VehicleTable(matchMedia('(prefers-reduced-motion: reduce)').matches);
const nowSeconds = (): number => performance.now() / 1_000;

const devices = new Map<number, SharedDevice>();
let title = 'Shared vehicles';
let state: 'connecting' | 'live' | 'lost' | 'ended' = 'connecting';
let map: MapLibre | null = null;
let rounds = 0;
let layer: VehicleLayer | null = null;
let labels: VehicleLabels | null = null;
/** The person has moved the map: it stays there. */
let isMoved = false;
const overlay = sharesOverlay();

async function start(): Promise<void> {
  show();
  const answer = await fetch(PATH).catch(() => null);
  if (answer?.ok) {
    const { data } = (await answer.json()) as { data: SharedFleet };
    title = data.name ?? title;
    document.title = title;
  }
  follow();
  await openMap();
}

/** Follows the vehicles. A browser reopens a stream that was cut, but not one that was refused. */
function follow(): void {
  const stream = new EventSource(`${PATH}/stream`);
  stream.addEventListener('open', () => become('live'));
  stream.addEventListener('device', ({ data }: MessageEvent<string>) => {
    const device = JSON.parse(data) as SharedDevice | { readonly id: number; readonly removed: true };
    if ('removed' in device) {
      devices.delete(device.id);
      table.remove(String(device.id));
    } else {
      devices.set(device.id, device);
      place(device);
    }
    show();
  });
  stream.addEventListener('ended', () => {
    stream.close();
    end();
  });
  stream.addEventListener('error', () => {
    become('lost');
    if (stream.readyState === EventSource.CLOSED) setTimeout(() => void again(), RETRY_MS);
  });
}

/** The table knows vehicles by names: here by their numbers. */
function place({ id, location: at }: SharedDevice): void {
  const imei = String(id);
  if (at === null) {
    table.remove(imei);
    return;
  }
  const { latitude, longitude, heading, speed_kmh: speedKmh = 0 } = at;
  const location = { latitude, longitude, speedKmh, heading, recordedAtMs: Date.parse(at.recorded_at) };
  const status = speedKmh > 0 ? 'moving' : 'parked';
  const unknown = { name: null, plate: null, ignition: null, groups: [], version: 0 };
  table.put({ ...unknown, imei, status, location }, nowSeconds(), Date.now());
}

async function again(): Promise<void> {
  const answer = await fetch(PATH).catch(() => null);
  if (answer?.status === 410 || answer?.status === 404) end();
  else follow();
}

function end(): void {
  devices.clear();
  labels?.remove();
  layer?.remove();
  map?.remove();
  map = layer = labels = null;
  become('ended');
}

function become(next: typeof state): void {
  state = next;
  show();
}

/** Programs that test the page may ask it where vehicles are shown now. */
interface SharedMap extends HTMLElement {
  vehicles?(): readonly LatLng[];
}

async function openMap(): Promise<void> {
  const element = document.querySelector<SharedMap>('.map');
  if (element === null) return;
  setWorkerUrl(import.meta.resolve('maplibre-gl/worker'));
  try {
    layer = new VehicleLayer(
      table,
      () => vehicleColors(scheme()),
      nowSeconds,
      (size) => {
        if (map !== null) labels?.draw(map, size, nowSeconds(), null, () => layer?.repaint());
      },
    );
    map = new MapLibre({
      container: element,
      style: baseStyle(scheme()),
      center: [10, 30],
      zoom: 1,
      maxPitch: 0,
      dragRotate: false,
      touchPitch: false,
      attributionControl: { compact: false },
      fadeDuration: 0,
    });
  } catch {
    return; // without WebGL the list shows the same
  }
  const [shown, vehicles] = [map, layer];
  shown.touchZoomRotate.disableRotation();
  shown.keyboard.disableRotation();
  centreInFreePart(shown);
  labels = new VehicleLabels(table, labelOf, 0);
  labels.addTo(shown);
  vehicles.addTo(shown);
  element.vehicles = () => [...table.places(nowSeconds())];
  if (baseTiles === null) drawGraticule(shown, scheme);
  shown.on('style.load', () => {
    overlay.add(shown);
    for (const name of baseNames(shown, scheme())) shown.addLayer(name);
  });
  for (const moved of ['dragstart', 'wheel', 'dblclick', 'keydown'] as const)
    shown.getCanvas().addEventListener(moved, () => {
      isMoved = true;
    });
  shown.on('dragstart', () => {
    isMoved = true;
  });
  onScheme(() => shown.setStyle(baseStyle(scheme()), { diff: false }));
  draw();
}

function show(): void {
  const page = document.getElementById('console');
  // A component that reads a signal, as units are, is drawn again only for other properties than before.
  if (page !== null) render(html`<${Page} round=${rounds++} />`, page);
  draw();
}

function draw(): void {
  if (map === null) return;
  const all = [...devices.values()];
  const places = all.flatMap(({ location: at }) =>
    at === null ? [] : [{ lat: at.latitude, lng: at.longitude }],
  );
  overlay.show(all.flatMap(wayOf));
  layer?.repaint();
  const bounds = isMoved ? null : boundsOf(places);
  if (bounds !== null) map.fitBounds(bounds, { ...FIT, animate: false });
}

function wayOf({ trail = [] }: SharedDevice): Feature[] {
  return trail
    .filter((part) => part.length > 1)
    .map((part) => ({
      type: 'Feature',
      properties: {},
      geometry: { type: 'LineString', coordinates: part.map((place) => [...place]) },
    }));
}

function labelOf(imei: string): string {
  const device = devices.get(Number(imei));
  return device === undefined ? '' : nameOf(device);
}

function nameOf({ id, name, plate }: SharedDevice): string {
  return name ?? plate ?? `Vehicle ${id}`;
}

const STATES = {
  connecting: 'Connecting…',
  live: 'Live',
  lost: 'Line lost, trying again…',
  ended: 'This link has ended.',
};

function Page(): VNode {
  if (state === 'ended') {
    return html`<main class="card"><h1>${STATES.ended}</h1><p role="status">Vehicles are shown only while it lasts. Ask the person who sent it for a new one.</p></main>`;
  }
  const all = [...devices.values()].sort((a, b) => a.id - b.id);
  return html`
    <header><h1>${title}</h1><span class=${`line ${state}`} role="status">${STATES[state]}</span></header>
    <div class="with-map">
      <section class="map-pane" aria-label="The vehicles on a map"><div class="map"></div></section>
      <main class="short"><ul class="rows">${all.map((device) => html`<li key=${device.id}>${nameOf(device)} <small>${whereOf(device)}</small></li>`)}</ul></main>
    </div>
  `;
}

function whereOf({ name, plate, place, location: at }: SharedDevice): unknown {
  const told = name && plate ? `${plate}, ` : '';
  if (place === 'private') return `${told}near a private place`;
  if (at === null) return `${told}no position yet`;
  const speed = at.speed_kmh === undefined ? '' : `${speedText(at.speed_kmh)}, `;
  return html`${told}${speed}<${Ago} at=${at.recorded_at} />`;
}

void start();
