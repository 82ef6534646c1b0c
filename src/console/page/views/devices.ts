import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { vehicleAddress } from '../address.ts';
import { filters } from '../filters.ts';
import { type KnownDevice, nameOf } from '../fleet.ts';
import { Ago, imeisShown, speedText } from '../format.ts';
import { Icon } from '../icons.ts';
import { isLarge } from '../largeFleet.ts';
import { fleet, fleetSize, line } from '../liveFleet.ts';
import { CallBehind, grouped, html } from '../parts.ts';
import { FilterBar } from './filterBar.ts';
import { devicesPath, useFound } from './foundDevices.ts';

/** More rows than people read; the search narrows them. */
const ROWS_MAX = 200;
/** Of a fleet that is too large to be held. */
const PAGE = 50;

export function Devices(): VNode {
  const asked = filters.value;
  const [page, setPage] = useState({ of: asked, offset: 0 });
  const offset = page.of === asked ? page.offset : 0; // other filters begin with the first page
  const max = isLarge.value ? PAGE : ROWS_MAX;
  const { count, first, problem, isAsking, reload } = useFound(asked, max, {
    round: fleet.round.value,
    offset,
  });
  const go = (by: number): void => setPage({ of: asked, offset: offset + by });
  const path = isLarge.value ? devicesPath(asked, PAGE, offset) : '/api/v1/stream?include=devices';
  return html`
    <${FilterBar} />
    <div class="tools spread">
      <p role="status">${isAsking ? 'Looking…' : `${grouped(count)} of ${grouped(fleetSize())} devices${shownPart(count, first.length, offset)}`}</p>
      ${
        first.length > 0 &&
        html`<button type="button" aria-pressed=${imeisShown.value !== ''} onClick=${() => {
          imeisShown.value = imeisShown.value === '' ? 'shown' : '';
        }}>Show IMEIs</button>`
      }
    </div>
    ${problem !== null && html`<p class="error" role="alert">${problem} <button type="button" onClick=${reload}>Try again</button></p>`}
    ${first.length > 0 && html`<${Rows} found=${first} />`}
    ${count === 0 && !isAsking && problem === null && html`<p class="empty"><${Icon} name=${fleetSize() > 0 ? 'search' : 'devices'} /> ${nothingFound(fleetSize())}</p>`}
    ${
      isLarge.value &&
      html`<p class="tools">
      <button type="button" disabled=${offset === 0} onClick=${() => go(-PAGE)}>Previous</button>
      <button type="button" disabled=${offset + PAGE >= count} onClick=${() => go(PAGE)}>Next</button>
      <button type="button" onClick=${reload}>Refresh</button>
    </p>`
    }
    <${CallBehind} call=${{ method: 'GET', path }} />
  `;
}

function shownPart(count: number, shown: number, offset: number): string {
  if (count <= shown) return '';
  return offset === 0 && shown === ROWS_MAX
    ? `; the first ${ROWS_MAX} are shown`
    : `; ${grouped(offset + 1)} to ${grouped(offset + shown)} are shown`;
}

function nothingFound(count: number): string {
  if (count > 0) return 'No device fits. Try fewer letters, another group, or more statuses.';
  return line.value.state === 'live'
    ? 'There are no devices yet. Add one with: fleet device:create --email … --imei …'
    : 'Waiting for the fleet.';
}

function Rows({ found }: { found: readonly KnownDevice[] }): VNode {
  return html`<table>
    <thead><tr><th scope="col">Device</th><th scope="col">Status</th><th scope="col" class="number">Speed</th><th scope="col" class="number">Position</th><th scope="col" class="number">Last point</th></tr></thead>
    <tbody>${found.map(
      (device) => html`<tr key=${device.imei} class=${device.status}>
        <th scope="row"><a class="plain" href=${vehicleAddress(device.imei)}>${nameOf(device)}</a><small>${device.plate}${imeisShown.value !== '' && ` ${device.imei}`}</small></th>
        <td><span class=${`status ${device.status}`}>${device.status}</span></td>
        ${
          device.location === null
            ? html`<td colspan="3">no position yet</td>`
            : html`<td class="number">${speedText(device.location.speedKmh)}</td>
              <td class="number">${device.location.latitude.toFixed(5)}, ${device.location.longitude.toFixed(5)}</td>
              <td class="number"><${Ago} at=${new Date(device.location.recordedAtMs).toISOString()} /></td>`
        }
      </tr>`,
    )}</tbody>
  </table>`;
}
