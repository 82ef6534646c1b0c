import type { VNode } from 'preact';
import { useId, useState } from 'preact/hooks';
import { nameOf } from '../fleet.ts';
import { nameOfImei } from '../liveFleet.ts';
import { html } from '../parts.ts';
import { useFound } from './foundDevices.ts';

const OFFERED_MAX = 20;

/** A vehicle that is chosen by name, plate or IMEI, once one device alone fits. */
export function VehicleField(props: {
  label: string;
  placeholder: string;
  /** '': none is chosen. */
  imei: string;
  change: (imei: string) => void;
  /** Of the input, in a form that says what is wrong with it. */
  attributes?: object;
}): VNode {
  const { label, placeholder, imei, change, attributes = {} } = props;
  const listId = useId();
  const [typed, setTyped] = useState<string | null>(null);
  const { first, count, isAsking } = useFound(
    typed === null || typed === '' ? null : { statuses: [], group: '', text: typed },
    OFFERED_MAX,
  );
  const choose = (device: string): void => {
    setTyped(null);
    change(device);
  };
  const onInput = (event: Event): void => {
    const text = textIn(event);
    // A name that was picked from those that are offered.
    const picked = first.find((device) => device.imei === text);
    if (picked === undefined) setTyped(text);
    else choose(picked.imei);
  };
  const onChange = (): void => {
    const [only] = first;
    if (typed === '') choose('');
    else if (typed !== null && count === 1 && only !== undefined) choose(only.imei);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter') return;
    event.preventDefault(); // it chooses, and does not send the form around it
    onChange();
  };
  const said =
    typed === null || typed === '' || isAsking || count === 1
      ? ''
      : count === 0
        ? 'no vehicle fits'
        : `${count} vehicles fit: choose one`;
  return html`<label>${label}
    <input type="search" list=${listId} placeholder=${placeholder} autocomplete="off" value=${typed ?? (imei === '' ? '' : nameOfImei(imei))}
      onInput=${onInput} onChange=${onChange} onKeyDown=${onKeyDown} ...${attributes} />
    <datalist id=${listId}>${first.map((device) => html`<option value=${device.imei}>${nameOf(device)}</option>`)}</datalist>
    <span role="status">${said}</span>
  </label>`;
}

function textIn(event: Event): string {
  return (event.currentTarget as HTMLInputElement).value;
}
