import type { VNode } from 'preact';
import { useEffect, useId, useState } from 'preact/hooks';
import { type KnownDevice, nameOf } from '../fleet.ts';
import { imeisShown } from '../format.ts';
import { useField } from '../forms.ts';
import { nameOfImei } from '../liveFleet.ts';
import { html } from '../parts.ts';
import { useFound } from './foundDevices.ts';

const OFFERED_MAX = 20;

interface VehicleChoice {
  readonly label: string;
  readonly placeholder: string;
  /** '': none is chosen. */
  readonly imei: string;
  readonly change: (imei: string) => void;
}

/** A vehicle that is chosen from those that a text fits, or once one device alone fits or is named so. */
export function VehicleField({
  label,
  placeholder,
  imei,
  change,
  attributes = {},
}: VehicleChoice & { attributes?: object }): VNode {
  const listId = useId();
  const [typed, setTyped] = useState<string | null>(null);
  const [picked, setPicked] = useState<Offer | null>(null);
  const [isAwaited, setAwaited] = useState(false);
  const { found, count, isAsking } = useFound(
    typed === null || typed === '' ? null : { statuses: [], group: '', text: typed },
    OFFERED_MAX,
  );
  const offers = offersOf(found.slice(0, OFFERED_MAX), imeisShown.value !== '');
  const named = (text: string | null): Offer | undefined => offers.find((offer) => offer.text === text);
  const choose = (offer: Offer | null): void => {
    setTyped(null);
    setPicked(offer);
    change(offer?.imei ?? '');
  };
  const onInput = (event: InputEvent): void => {
    const text = (event.currentTarget as HTMLInputElement).value;
    // Who types a name may go on to a longer one.
    const offer = isPick(event) ? named(text) : undefined;
    setAwaited(false);
    if (offer === undefined) setTyped(text);
    else choose(offer);
  };
  const settle = (): void => {
    const offer = named(typed) ?? (count === 1 ? offers[0] : undefined);
    if (isAsking) setAwaited(true);
    else if (typed === '') choose(null);
    else if (typed !== null && offer !== undefined) choose(offer);
  };
  useEffect(() => {
    if (!isAwaited || isAsking) return;
    setAwaited(false);
    settle();
  });
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.key !== 'Enter') return;
    event.preventDefault(); // it chooses, and does not send the form around it
    settle();
  };
  const said =
    typed === null || typed === '' || isAsking || count === 1 || named(typed) !== undefined
      ? ''
      : count === 0
        ? 'no vehicle fits'
        : `${count} vehicles fit: choose one`;
  const shown = picked?.imei === imei ? picked.text : nameOfImei(imei);
  return html`<label>${label}
    <input type="search" list=${listId} placeholder=${placeholder} autocomplete="off" value=${typed ?? (imei === '' ? '' : shown)}
      onInput=${onInput} onChange=${settle} onKeyDown=${onKeyDown} ...${attributes} />
    <datalist id=${listId}>${offers.map((offer) => html`<option key=${offer.imei} value=${offer.text}>${offer.detail}</option>`)}</datalist>
    <span role="status">${said}</span>
  </label>`;
}

/** The same as a field of a form that says what is wrong with it. */
export function VehicleFormField({ name, ...choice }: VehicleChoice & { name: string }): VNode {
  const { attributes, ErrorText } = useField(name);
  return html`<${VehicleField} ...${choice} attributes=${attributes} />${ErrorText}`;
}

/** Whether the text was taken from the list of the field. Browsers that do not say how it came are believed. */
function isPick({ inputType }: InputEvent): boolean {
  return inputType === undefined || inputType === '' || inputType === 'insertReplacementText';
}

interface Offer {
  readonly imei: string;
  /** What the field says when it is chosen: no other that is offered has the same. */
  readonly text: string;
  /** What else is known of it. */
  readonly detail: string;
}

/** Each tells more of a device than the one before; the last one tells all. */
const WAYS: readonly ((device: KnownDevice) => string)[] = [
  nameOf,
  ({ name, plate, imei }) => [name, plate].filter((part) => part !== null).join(', ') || imei,
  ...[4, 6, 20].map((digits) => (device: KnownDevice) => `${nameOf(device)}, …${device.imei.slice(-digits)}`),
];

/** How a list offers devices: by name, with as much more as sets apart those of the same name. */
export function offersOf(devices: readonly KnownDevice[], withImeis: boolean): readonly Offer[] {
  return devices.map((device) => {
    const isOwn = (way: (device: KnownDevice) => string): boolean =>
      devices.every((other) => other === device || way(other) !== way(device));
    const { imei, name, plate } = device;
    const details = [name === null ? null : plate, withImeis ? imei : null];
    return {
      imei,
      text: (WAYS.find(isOwn) ?? nameOf)(device),
      detail: details.filter((part) => part !== null).join(', '),
    };
  });
}
