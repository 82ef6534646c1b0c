import type { VNode } from 'preact';
import { filters } from '../filters.ts';
import { findDevices, type KnownDevice, nameOf } from '../fleet.ts';
import { fleet, line, shownFleet } from '../liveFleet.ts';
import { Curl, html, Time } from '../parts.ts';
import { FilterBar } from './filterBar.ts';

/** More rows than people read; the search narrows them. */
const ROWS_MAX = 200;

export function Devices(): VNode {
  fleet.round.value; // drawn again with each round
  filters.value;
  const { count, first } = findDevices(shownFleet.values(), '', ROWS_MAX);
  return html`
    <${FilterBar} />
    <p role="status">${count} of ${fleet.size} devices${count > ROWS_MAX ? `; the first ${ROWS_MAX} are shown` : ''}</p>
    ${count === 0 ? html`<p class="empty">${nothingFound(fleet.size)}</p>` : html`<${Rows} found=${first} />`}
    <${Curl} call=${{ method: 'GET', path: '/api/v1/stream?include=devices' }} />
  `;
}

function nothingFound(count: number): string {
  if (count > 0) return 'No device fits. Try fewer letters, another group, or more statuses.';
  return line.value.state === 'live'
    ? 'There are no devices yet. Add one with: fleet device:create --email … --imei …'
    : 'Waiting for the fleet.';
}

function Rows({ found }: { found: readonly KnownDevice[] }): VNode {
  return html`<table>
    <thead><tr><th scope="col">Device</th><th scope="col">Status</th><th scope="col">Speed</th><th scope="col">Position</th><th scope="col">Last point</th></tr></thead>
    <tbody>${found.map(
      (device) => html`<tr key=${device.imei}>
        <th scope="row">${nameOf(device)}<small>${device.plate} ${device.imei}</small></th>
        <td><span class=${`status ${device.status}`}>${device.status}</span></td>
        ${
          device.location === null
            ? html`<td colspan="3">no position yet</td>`
            : html`<td>${Math.round(device.location.speedKmh)} km/h</td>
              <td>${device.location.latitude.toFixed(5)}, ${device.location.longitude.toFixed(5)}</td>
              <td><${Time} at=${new Date(device.location.recordedAtMs).toISOString()} /></td>`
        }
      </tr>`,
    )}</tbody>
  </table>`;
}
