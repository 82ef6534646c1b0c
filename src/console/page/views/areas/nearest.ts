import type { VNode } from 'preact';
import { vehicleAddress } from '../../address.ts';
import { useLoaded } from '../../api.ts';
import { filterQuery, filters } from '../../filters.ts';
import { nameOf } from '../../fleet.ts';
import { distanceText } from '../../format.ts';
import { Panel } from '../../forms.ts';
import { CallBehind, html, List } from '../../parts.ts';
import type { Area, NearDevice } from '../../types.ts';

const LISTED_MAX = 10;

/** The vehicles that are nearest to the middle of an area now, of those that pass the filters. */
export function Nearest({ area, close }: { area: Area; close: () => void }): VNode | null {
  const { center } = area;
  const { statuses, group } = filters.value;
  const filtered = filterQuery(filters.value);
  const path =
    center === null
      ? null
      : `/api/v1/devices/nearest?lat=${center.lat}&lng=${center.lng}&limit=${LISTED_MAX}${filtered && `&${filtered}`}`;
  const { reply, reload } = useLoaded<readonly NearDevice[]>(path);
  if (path === null) return null;
  const wanted = [statuses.join(' or '), group && `in ${group}`].filter((part) => part !== '').join(', ');
  return html`<${Panel} label=${`Nearest to ${area.name}`} close=${close}>
    <p class="empty">${wanted === '' ? 'Of all vehicles. A status or a group above the map narrows them.' : `Of the vehicles that are ${wanted}, as chosen above the map.`}</p>
    <${List} reply=${reply} reload=${reload} empty="No vehicle with a position passes the filters."
      show=${(near: readonly NearDevice[]) =>
        html`<ol class="rows">${near.map(
          (device) => html`<li key=${device.imei}>
            <a class="plain" href=${vehicleAddress(device.imei)}>${nameOf(device)}</a> <span class=${`status ${device.status}`}>${device.status}</span> <span class="beside">${distanceText(device.distance_km)}</span>
          </li>`,
        )}</ol>`} />
    <p class="tools"><button type="button" onClick=${reload}>Refresh</button></p>
    <${CallBehind} call=${{ method: 'GET', path }} />
  <//>`;
}
