import type { VNode } from 'preact';
import { useEffect, useRef } from 'preact/hooks';
import { changeFilters, filters } from '../filters.ts';
import { findDevices, type KnownDevice, nameOf } from '../fleet.ts';
import { fleet, line, shownFleet } from '../liveFleet.ts';
import {
  choose,
  chosen,
  chosenArea,
  drawnAreas,
  isFollowing,
  mapError,
  onSpot,
  seek,
  trail,
  trailHours,
} from '../map/mapState.ts';
import type { MapView } from '../map/mapView.ts';
import { trailPath } from '../map/trail.ts';
import { loadWorld } from '../map/world.ts';
import { Curl, counted, html, Time } from '../parts.ts';
import { FilterBar } from './filterBar.ts';

const FOUND_MAX = 8;
const HOURS = [0, 1, 6, 24];

/** The panel beside the map: the search, the devices on a spot, and the chosen device. */
export function MapPanel(): VNode {
  fleet.round.value; // drawn again with each round
  const { areas, total, error } = drawnAreas.value;
  const area = areas.find(({ id }) => id === chosenArea.value);
  const device = chosen.value === null ? undefined : fleet.get(chosen.value);
  return html`
    <${Found} />
    ${onSpot.value !== null && html`<${Spot} />`}
    ${device === undefined ? html`<p class="empty">${hint()}</p>` : html`<${Card} device=${device} />`}
    ${area !== undefined && html`<p role="status">Area: ${area.name}</p>`}
    ${error !== null && html`<p class="error" role="alert">Not all areas are drawn; those that are missing are asked for again within half a minute. (${error})</p>`}
    ${error === null && total > areas.length && html`<p class="empty">${areas.length} of ${total} areas are drawn.</p>`}
    <${Curl} call=${{ method: 'GET', path: '/api/v1/stream' }} />
  `;
}

function hint(): string {
  if (line.value.state !== 'live') return 'Waiting for the fleet.';
  return fleet.size === 0
    ? 'There are no devices yet. Add one with: fleet device:create --email … --imei …'
    : 'Click a vehicle, or search one, to see more of it.';
}

function found(): { count: number; first: KnownDevice[] } {
  return findDevices(filters.value.text.trim() === '' ? [] : shownFleet.values(), '', FOUND_MAX);
}

/** What the search finds; the map shows the same. */
function Found(): VNode {
  const { count, first } = found();
  return html`
    <p role="status">${filters.value.text.trim() !== '' && `${count} found${count > FOUND_MAX ? `; the first ${FOUND_MAX} are shown` : ''}`}</p>
    <${Choice} devices=${first} pick=${goTo} />
  `;
}

/** The search has ended: the others are shown again. */
function goTo(imei: string): void {
  changeFilters({ text: '' });
  seek(imei);
}

function goToFirst(): void {
  const [first] = found().first;
  if (first !== undefined) goTo(first.imei);
}

/** Vehicles that are too near to each other to be clicked one by one. */
function Spot(): VNode {
  const { count, imeis } = onSpot.value ?? { count: 0, imeis: [] };
  const here = imeis.map((imei) => fleet.get(imei)).filter((device) => device !== undefined);
  return html`<section aria-label="Vehicles on this spot">
    <h3>${count} vehicles here</h3>
    <${Choice} devices=${here} pick=${choose} />
    ${count > here.length && html`<p class="empty">The nearest ${here.length} are listed. Zoom in to see more of them.</p>`}
  </section>`;
}

function Choice({ devices, pick }: { devices: readonly KnownDevice[]; pick: (imei: string) => void }): VNode {
  return html`<ul class="rows">${devices.map(
    (device) => html`<li key=${device.imei}>
      <button type="button" class="row" aria-pressed=${chosen.value === device.imei} onClick=${() => pick(device.imei)}>
        ${nameOf(device)} <span class=${`status ${device.status}`}>${device.status}</span><small>${device.plate} ${device.imei}</small>
      </button>
    </li>`,
  )}</ul>`;
}

function Card({ device }: { device: KnownDevice }): VNode {
  const { location, imei, status } = device;
  return html`<section aria-label=${`Chosen: ${nameOf(device)}`}>
    <h3>${nameOf(device)}</h3>
    <p><span class=${`status ${status}`}>${status}</span>${
      location === null
        ? ', no position yet'
        : html`, ${Math.round(location.speedKmh)} km/h
          <small>${location.latitude.toFixed(5)}, ${location.longitude.toFixed(5)}, <${Time} at=${new Date(location.recordedAtMs).toISOString()} /></small>`
    }</p>
    <p class="tools">
      <button type="button" onClick=${() => seek(imei)}>Show</button>
      <button type="button" aria-pressed=${isFollowing.value} onClick=${() => {
        isFollowing.value = !isFollowing.value;
      }}>Follow</button>
      <button type="button" onClick=${() => choose(null)}>Close</button>
    </p>
    <label>Trail of the last
      <select value=${trailHours.value} onChange=${(event: Event) => {
        trailHours.value = Number((event.currentTarget as HTMLSelectElement).value);
      }}>${HOURS.map((hours) => html`<option value=${hours}>${hours === 0 ? 'no trail' : `${hours} h`}</option>`)}</select>
    </label>
    ${trailHours.value > 0 && html`<p role="status">${trailText()}</p><${Curl} call=${{ method: 'GET', path: trailPath(imei, trailHours.value) }} />`}
  </section>`;
}

function trailText(): string {
  if (trail.value === null) return 'Asking for the trail…';
  const { points, error } = trail.value;
  return `${counted(points, 'point')}${error === null ? '' : `; ${error}`}`;
}

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
    ${isShown && html`<${FilterBar} submit=${goToFirst} />`}
    ${mapError.value !== null && html`<p class="empty" role="status">${mapError.value}</p>`}
    <div class="map" ref=${place}></div>
  </div>`;
}

async function openMap(element: MapElement, isOpen: () => boolean): Promise<void> {
  mapError.value = null;
  try {
    const [{ MapView }] = await Promise.all([import('../map/mapView.ts'), loadWorld()]);
    if (isOpen()) element.view = new MapView(element);
  } catch (error) {
    const { name, message } = error as Error;
    mapError.value =
      name === 'GPUInitializationError' ? NO_WEBGL : `The map does not start: ${message}. Reload the page.`;
  }
}
