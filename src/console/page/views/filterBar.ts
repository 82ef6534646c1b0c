import type { VNode } from 'preact';
import { useId } from 'preact/hooks';
import { changeFilters, filters, STATUSES, type Status } from '../filters.ts';
import { fleet, shownCounts } from '../liveFleet.ts';
import { grouped, html } from '../parts.ts';

/** As the map draws them, as far as letters can. */
const SIGNS: Readonly<Record<Status, string>> = { moving: '▲', parked: '●', offline: '○', unknown: '?' };

/** What is shown, by text, status and group; the same on all views. `submit`: Enter in the search. */
export function FilterBar({ submit }: { submit?: () => void }): VNode {
  const { statuses, group, text } = filters.value;
  const listId = useId();
  const names = fleet.groupNames();
  const onKeyDown = ({ key }: KeyboardEvent): void => {
    if (key === 'Enter') submit?.();
  };
  const toggle = (status: Status): void => {
    const others = statuses.filter((one) => one !== status);
    changeFilters({ statuses: others.length < statuses.length ? others : [...statuses, status] });
  };
  /** While a name is typed, its first letters are not yet the name of a group. */
  const typeGroup = (event: InputEvent): void => {
    const typed = textOf(event);
    if (typed === '' || names.includes(typed)) changeFilters({ group: typed });
  };
  return html`<div role="search" class="filters">
    <label>Search
      <input type="search" placeholder="Name, plate or IMEI" value=${text} onKeyDown=${onKeyDown}
        onInput=${(event: InputEvent) => changeFilters({ text: textOf(event) })} />
    </label>
    <label>Group
      <input type="search" placeholder="Any" list=${listId} autocomplete="off" value=${group} onInput=${typeGroup}
        onChange=${(event: InputEvent) => changeFilters({ group: textOf(event).trim() })} />
    </label>
    <datalist id=${listId}>${names.map((name) => html`<option value=${name} />`)}</datalist>
    <div role="group" aria-label="Status">${STATUSES.map(
      (
        status,
      ) => html`<button type="button" aria-pressed=${statuses.includes(status)} onClick=${() => toggle(status)}>
        <span class=${`sign ${status}`} aria-hidden="true">${SIGNS[status]}</span> <span>${status}</span> <span class="count">${countOf(status)}</span>
      </button>`,
    )}</div>
  </div>`;
}

function countOf(status: Status): string {
  return grouped(shownCounts.value[status]);
}

function textOf(event: InputEvent): string {
  return (event.currentTarget as HTMLInputElement).value;
}
