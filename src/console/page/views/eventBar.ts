import type { VNode } from 'preact';
import { useState } from 'preact/hooks';
import { useLoaded } from '../api.ts';
import { fieldText, msOfField } from '../format.ts';
import { drawnAreas } from '../map/mapState.ts';
import { html } from '../parts.ts';
import type { Area } from '../types.ts';
import {
  EVENT_TYPES,
  type EventFilters,
  eventFilters,
  eventQuery,
  NO_EVENT_FILTERS,
  typesBeside,
} from './eventFilters.ts';
import { VehicleField } from './vehicleField.ts';

/** Those that the map draws; without a map the first that there are, once they are wanted. */
export function useAreas(isWanted: boolean): readonly Area[] {
  const drawn = drawnAreas.value.areas;
  const { reply } = useLoaded<readonly Area[]>(
    drawn.length === 0 && isWanted ? '/api/v1/areas?limit=200' : null,
  );
  const areas = drawn.length === 0 && reply?.ok ? reply.data : drawn;
  return areas.toSorted((a, b) => a.name.localeCompare(b.name));
}

/** Which events are listed: by type, vehicle, area and time. */
export function EventBar({ areas, wantAreas }: { areas: readonly Area[]; wantAreas: () => void }): VNode {
  const asked = eventFilters.value;
  const { type, areaId, fromMs, toMs } = asked;
  const [isOpen, setOpen] = useState(areaId !== null || fromMs !== null || toMs !== null);
  const change = (part: Partial<EventFilters>): void => {
    const next = { ...asked, ...part };
    eventFilters.value = typesBeside(next).includes(next.type) ? next : { ...next, type: '' };
  };
  const time = (
    name: 'fromMs' | 'toMs',
    label: string,
    ms: number | null,
  ): VNode => html`<label class="wide seldom">${label}
    <input type="datetime-local" value=${ms === null ? '' : fieldText(ms)} onChange=${(event: Event) => {
      const changed = msOfField(textIn(event));
      change({ [name]: Number.isNaN(changed) ? null : changed });
    }} />
  </label>`;
  return html`<div role="search" class=${isOpen ? 'filters' : 'filters few'} aria-label="Events that are listed">
    <label>Type
      <select value=${type} onChange=${(event: Event) => change({ type: textIn(event) })}>
        <option value="">Any</option>
        ${typesBeside(asked).map((name) => html`<option value=${name}>${EVENT_TYPES[name]}</option>`)}
      </select>
    </label>
    <${VehicleField} label="Vehicle" placeholder="Any" imei=${asked.device} change=${(device: string) => change({ device })} />
    <button type="button" class="more" aria-expanded=${isOpen} onClick=${() => setOpen(!isOpen)}>More filters</button>
    <label class="seldom">Area
      <select value=${areaId ?? ''} onFocus=${wantAreas} onChange=${(event: Event) =>
        change({ areaId: textIn(event) === '' ? null : Number(textIn(event)) })}>
        <option value="">Any</option>
        ${areaId !== null && !areas.some(({ id }) => id === areaId) && html`<option value=${areaId}>Area ${areaId}</option>`}
        ${areas.map(({ id, name }) => html`<option value=${id}>${name}</option>`)}
      </select>
    </label>
    ${time('fromMs', 'From', fromMs)}${time('toMs', 'To', toMs)}
    ${
      eventQuery(asked) !== '' &&
      html`<button type="button" onClick=${() => {
        eventFilters.value = NO_EVENT_FILTERS;
      }}>Show all</button>`
    }
  </div>`;
}

function textIn(event: Event): string {
  return (event.currentTarget as HTMLInputElement | HTMLSelectElement).value;
}
