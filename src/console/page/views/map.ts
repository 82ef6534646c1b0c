import { signal } from '@preact/signals';
import type { VNode } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { mayChange } from '../api.ts';
import { changeFilters, filters } from '../filters.ts';
import { changeOf, type KnownDevice, nameOf } from '../fleet.ts';
import { Ago, speedText } from '../format.ts';
import { Panel } from '../forms.ts';
import { Icon } from '../icons.ts';
import { isLarge, openStream, viewProblem } from '../largeFleet.ts';
import { LongList, type RowOfList } from '../lists/longList.ts';
import { fleet, fleetSize, line } from '../liveFleet.ts';
import {
  askedDay,
  choose,
  chosen,
  chosenArea,
  clustered,
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
import { CallBehind, counted, grouped, html } from '../parts.ts';
import { streamPath } from '../stream.ts';
import { FilterBar } from './filterBar.ts';
import { useFound } from './foundDevices.ts';
import { ShareForm } from './shareForm.ts';
import { VehicleDay } from './vehicleDay.ts';

/** Of a fleet that is too large to be held: more than people read; the search narrows them. */
const LISTED_MAX = 100;
const HOURS = [0, 1, 6, 24];

/** The panel beside the map: the search, the devices on a spot, and the chosen device. */
export function MapPanel(): VNode {
  if (chosen.value !== null) fleet.round.value; // drawn again with each round
  const { areas, total, error } = drawnAreas.value;
  const area = areas.find(({ id }) => id === chosenArea.value);
  const device = chosen.value === null ? undefined : fleet.get(chosen.value);
  const isSought = filters.value.text.trim() !== '';
  const list = html`<${FleetList} key="list" />`;
  return html`
    ${isSought && list}
    ${onSpot.value !== null && html`<${Spot} />`}
    ${device === undefined ? html`<p class="empty" role="status">${chosen.value === null ? html`<${Hint} />` : missing(chosen.value)}</p>` : html`<${Card} key=${device.imei} device=${device} />`}
    ${viewProblem.value !== null && html`<p class="error" role="alert">The map does not show all that it should, and tries again: ${viewProblem.value}</p>`}
    ${area !== undefined && html`<p role="status">Area: ${area.name}</p>`}
    ${error !== null && html`<p class="error" role="alert">Not all areas are drawn; those that are missing are asked for again within half a minute. (${error})</p>`}
    ${error === null && total > areas.length && html`<p class="empty">${areas.length} of ${total} areas are drawn.</p>`}
    <${CallBehind} call=${{ method: 'GET', path: clustered.value?.path ?? streamPath(openStream.value ?? '') }} />
    ${!isSought && list}
  `;
}

function Hint(): unknown {
  fleet.round.value; // drawn again with each round
  if (line.value.state !== 'live') return 'Waiting for the fleet.';
  if (clustered.value !== null)
    return `${grouped(clustered.value.vehicles)} vehicles, most of them in clusters. Click one, or zoom in, to see single vehicles.`;
  return fleetSize() === 0
    ? html`<${Icon} name="devices" /> There are no devices yet. Add one with: fleet device:create --email … --imei …`
    : 'Choose a vehicle here or on the map.';
}

/** The chosen one is not known (yet). */
function missing(imei: string): string {
  return line.value.state === 'live' && !isLarge.value
    ? `No vehicle of this account has the IMEI ${imei}.`
    : 'Asking for the vehicle…';
}

/** The vehicles that pass the filters, which the map shows too; of a large fleet, only what is searched. */
function FleetList(): VNode | null {
  const asked = filters.value;
  const isSought = asked.text.trim() !== '';
  const isListed = isSought || (!isLarge.value && chosen.value === null);
  fleet.round.value; // drawn again with each round
  const { count, found, problem, isAsking } = useFound(isListed ? asked : null, LISTED_MAX);
  const isWanted = isFirstWanted.value;
  useEffect(() => {
    if (isAsking || !isWanted) return;
    isFirstWanted.value = false;
    if (found[0] !== undefined) goTo(found[0]);
  });
  if (!isListed || (count === 0 && !isSought)) return null;
  const what = isSought ? 'found' : count === 1 ? 'vehicle' : 'vehicles';
  const said = `${grouped(count)} ${what}${count > found.length ? `; the first ${LISTED_MAX} are shown` : ''}`;
  return html`
    <p role="status">${isAsking ? 'Looking…' : (problem ?? said)}</p>
    <${Choice} devices=${found} pick=${goTo} />
  `;
}

/** Enter was pressed in the search: the first that it finds is gone to. */
const isFirstWanted = signal(false);

/** The search has ended: the others are shown again. */
function goTo(device: KnownDevice): void {
  changeFilters({ text: '' });
  if (fleet.get(device.imei) === undefined) fleet.apply([changeOf(device)]);
  seek(device.imei);
}

function chooseDevice({ imei }: KnownDevice): void {
  choose(imei);
}

/** Vehicles that are too near to each other to be clicked one by one. */
function Spot(): VNode {
  fleet.round.value; // drawn again with each round
  const { count, imeis } = onSpot.value ?? { count: 0, imeis: [] };
  const here = imeis.map((imei) => fleet.get(imei)).filter((device) => device !== undefined);
  return html`<section aria-label="Vehicles on this spot">
    <h3>${count} vehicles here</h3>
    <${Choice} devices=${here} pick=${chooseDevice} />
    ${count > here.length && html`<p class="empty">The nearest ${here.length} are listed. Zoom in to see more of them.</p>`}
  </section>`;
}

function Choice({
  devices,
  pick,
}: {
  devices: readonly KnownDevice[];
  pick: (device: KnownDevice) => void;
}): VNode {
  const row = (device: KnownDevice, { place, tabIndex }: RowOfList): VNode =>
    html`<${VehicleRow} ...${place} device=${device} version=${device.version} tabIndex=${tabIndex} pick=${pick} />`;
  return html`<${LongList} as="ul" items=${devices} keyOf=${({ imei }: KnownDevice) => imei} row=${row} />`;
}

interface VehicleRowProps {
  readonly device: KnownDevice;
  /** Of the device. The signals package draws a component again only if a property or a signal that it reads has changed. */
  readonly version: number;
  readonly tabIndex: number;
  readonly pick: (device: KnownDevice) => void;
}

function VehicleRow({ device, version: _, tabIndex, pick, ...place }: VehicleRowProps): VNode {
  const { imei, plate, status, location } = device;
  return html`<li ...${place}>
    <button type="button" class="row vehicle" tabindex=${tabIndex} aria-pressed=${chosen.value === imei} onClick=${() => pick(device)}>
      <span>${nameOf(device)}</span> <span class=${`status ${status}`}>${status}</span>
      <small>${plate}</small> <small>${location !== null && html`${speedText(location.speedKmh)}, <${Ago} at=${new Date(location.recordedAtMs).toISOString()} />`}</small>
    </button>
  </li>`;
}

function Card({ device }: { device: KnownDevice }): VNode {
  const { location, imei, status } = device;
  const [isSharing, setSharing] = useState(false);
  const place = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    const card = place.current;
    // The list that was here may have been scrolled, and its row had the focus; a click on the map leaves the focus there.
    card?.closest('main')?.scrollTo(0, 0);
    if (isFocusLost()) card?.focus();
    return () => {
      if (isFocusLost() || card?.contains(document.activeElement))
        document.querySelector<HTMLElement>('main h2')?.focus();
    };
  }, []);
  return html`<section ref=${place} tabindex="-1" aria-label=${`Chosen: ${nameOf(device)}`}>
    <h3>${nameOf(device)}</h3>
    <p><span class=${`status ${status}`}>${status}</span>${
      location === null
        ? ' no position yet'
        : html` ${speedText(location.speedKmh)}
          <small>${location.latitude.toFixed(5)}, ${location.longitude.toFixed(5)}, <${Ago} at=${new Date(location.recordedAtMs).toISOString()} /></small>`
    }</p>
    <p class="tools">
      <button type="button" onClick=${() => seek(imei)}>Show</button>
      <button type="button" aria-pressed=${isFollowing.value} onClick=${() => {
        isFollowing.value = !isFollowing.value;
      }}>Follow</button>
      ${mayChange() && html`<button type="button" aria-expanded=${isSharing} onClick=${() => setSharing(!isSharing)}>Share</button>`}
      <button type="button" onClick=${() => choose(null)}>Close</button>
    </p>
    ${
      isSharing &&
      mayChange() &&
      html`<${Panel} label=${`Share ${nameOf(device)}`} close=${() => setSharing(false)}>
        <${ShareForm} imeis=${[imei]} made=${() => undefined} />
      <//>`
    }
    <${VehicleDay} key=${imei} imei=${imei} />
    ${askedDay.value === null && html`<${HoursTrail} imei=${imei} />`}
  </section>`;
}

function isFocusLost(): boolean {
  return document.activeElement === null || document.activeElement === document.body;
}

function HoursTrail({ imei }: { imei: string }): VNode {
  return html`
    <label>Trail of the last
      <select value=${trailHours.value} onChange=${(event: Event) => {
        trailHours.value = Number((event.currentTarget as HTMLSelectElement).value);
      }}>${HOURS.map((hours) => html`<option value=${hours}>${hours === 0 ? 'no trail' : `${hours} h`}</option>`)}</select>
    </label>
    ${trailHours.value > 0 && html`<p role="status">${trailText()}</p><${CallBehind} call=${{ method: 'GET', path: trailPath(imei, trailHours.value) }} />`}
  `;
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
  return html`<section class="map-pane" aria-label="The map with its filters" hidden=${!isShown}>
    ${
      isShown &&
      html`<${FilterBar} submit=${() => {
        isFirstWanted.value = true;
      }} />`
    }
    ${mapError.value !== null && html`<p class="empty" role="status">${mapError.value}</p>`}
    <div class="map" ref=${place}></div>
  </section>`;
}

async function openMap(element: MapElement, isOpen: () => boolean): Promise<void> {
  mapError.value = null;
  try {
    const { MapView } = await import('../map/mapView.ts');
    if (isOpen()) element.view = new MapView(element);
  } catch (error) {
    const { name, message } = error as Error;
    mapError.value =
      name === 'GPUInitializationError' ? NO_WEBGL : `The map does not start: ${message}. Reload the page.`;
  }
}
