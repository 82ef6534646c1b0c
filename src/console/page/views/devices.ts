import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { vehicleAddress } from '../address.ts';
import { filters } from '../filters.ts';
import { type KnownDevice, nameOf } from '../fleet.ts';
import { Ago, imeisShown, speedText } from '../format.ts';
import { Icon } from '../icons.ts';
import { isLarge } from '../largeFleet.ts';
import { LongList, type RowOfList } from '../lists/longList.ts';
import { fleet, fleetSize, line } from '../liveFleet.ts';
import { CallBehind, grouped, html } from '../parts.ts';
import { FilterBar } from './filterBar.ts';
import { devicesPath, useFound } from './foundDevices.ts';

/** Of a fleet that is too large to be held. */
const PAGE = 50;

export function Devices(): VNode {
  const asked = filters.value;
  const [page, setPage] = useState({ of: asked, offset: 0 });
  const offset = page.of === asked ? page.offset : 0; // other filters begin with the first page
  fleet.round.value; // drawn again with each round
  const { count, found, problem, isAsking, reload } = useFound(asked, PAGE, offset);
  const go = (by: number): void => setPage({ of: asked, offset: offset + by });
  const path = isLarge.value ? devicesPath(asked, PAGE, offset) : '/api/v1/stream?include=devices';
  return html`
    <${FilterBar} />
    <div class="tools spread">
      <p role="status">${isAsking ? 'Looking…' : `${grouped(count)} of ${grouped(fleetSize())} devices${shownPart(count, found.length, offset)}`}</p>
      ${
        found.length > 0 &&
        html`<button type="button" aria-pressed=${imeisShown.value !== ''} onClick=${() => {
          imeisShown.value = imeisShown.value === '' ? 'shown' : '';
        }}>Show IMEIs</button>`
      }
    </div>
    ${problem !== null && html`<p class="error" role="alert">${problem} <button type="button" onClick=${reload}>Try again</button></p>`}
    <${CallBehind} call=${{ method: 'GET', path }} />
    ${found.length > 0 && html`<${Rows} found=${found} />`}
    ${count === 0 && !isAsking && problem === null && html`<p class="empty"><${Icon} name=${fleetSize() > 0 ? 'search' : 'devices'} /> ${nothingFound(fleetSize())}</p>`}
    ${
      isLarge.value &&
      html`<p class="tools">
      <button type="button" disabled=${offset === 0} onClick=${() => go(-PAGE)}>Previous</button>
      <button type="button" disabled=${offset + PAGE >= count} onClick=${() => go(PAGE)}>Next</button>
      <button type="button" onClick=${reload}>Refresh</button>
    </p>`
    }
  `;
}

function shownPart(count: number, shown: number, offset: number): string {
  return count <= shown ? '' : `; ${grouped(offset + 1)} to ${grouped(offset + shown)} are shown`;
}

function nothingFound(count: number): string {
  if (count > 0) return 'No device fits. Try fewer letters, another group, or more statuses.';
  return line.value.state === 'live'
    ? 'There are no devices yet. Add one with: fleet device:create --email … --imei …'
    : 'Waiting for the fleet.';
}

function Rows({ found }: { found: readonly KnownDevice[] }): VNode {
  return html`<table class="fleet" aria-rowcount=${found.length + 1}>
    <thead><tr aria-rowindex="1"><th scope="col">Device</th><th scope="col">Status</th><th scope="col" class="number">Speed</th><th scope="col" class="number">Position</th><th scope="col" class="number">Last point</th></tr></thead>
    <${LongList} as="tbody" items=${found} keyOf=${({ imei }: KnownDevice) => imei} row=${deviceRow} />
  </table>`;
}

const deviceRow = (device: KnownDevice, { place, tabIndex }: RowOfList): VNode =>
  html`<${DeviceRow} ...${place} device=${device} version=${device.version} tabIndex=${tabIndex} />`;

interface DeviceRowProps {
  readonly device: KnownDevice;
  /** Of the device. The signals package draws a component again only if a property or a signal that it reads has changed. */
  readonly version: number;
  readonly tabIndex: number;
}

function DeviceRow({ device, version: _, tabIndex, ...place }: DeviceRowProps): VNode {
  const { imei, plate, status, location } = device;
  const detail = [plate, imeisShown.value === '' ? null : imei].filter((part) => part !== null);
  return html`<tr ...${place} class=${status}>
    <th scope="row"><a class="plain" tabindex=${tabIndex} href=${vehicleAddress(imei)}>${nameOf(device)}</a><small>${detail.join(' ')}</small></th>
    <td><span class=${`status ${status}`}>${status}</span></td>
    ${
      location === null
        ? html`<td colspan="3">no position yet</td>`
        : html`<td class="number">${speedText(location.speedKmh)}</td>
          <td class="number">${location.latitude.toFixed(5)}, ${location.longitude.toFixed(5)}</td>
          <td class="number"><${Ago} at=${new Date(location.recordedAtMs).toISOString()} /></td>`
    }
  </tr>`;
}
