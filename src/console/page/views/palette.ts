import type { VNode } from 'preact';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { addressOf, areaAddress, VIEW_NAMES, vehicleAddress } from '../address.ts';
import { fitting, type KnownDevice, nameOf } from '../fleet.ts';
import { imeisShown } from '../format.ts';
import { Icon, type IconName } from '../icons.ts';
import { seek } from '../map/mapState.ts';
import { html } from '../parts.ts';
import type { Area } from '../types.ts';
import { useAreas } from './eventBar.ts';
import { useFound } from './foundDevices.ts';

/** Of each kind. More letters lead to the others. */
const OFFERED_MAX = 8;

/** Somewhere to go. */
interface Target {
  readonly icon: IconName;
  readonly name: string;
  readonly detail: string;
  readonly address: string;
  /** Of a vehicle, which the map is to show; null: of anything else. */
  readonly imei: string | null;
}

/** Views, areas and vehicles whose name, plate or IMEI has the text. `devices`: those that were found by it. */
export function targetsOf(
  text: string,
  areas: readonly Area[],
  devices: readonly KnownDevice[],
): readonly Target[] {
  const fits = fitting(text);
  const isNamed = (name: string): boolean => fits({ name, plate: null, imei: '' });
  return [
    ...VIEW_NAMES.filter(isNamed).map((name) => ({
      icon: name.toLowerCase() as IconName,
      name,
      detail: 'View',
      address: addressOf(name),
      imei: null,
    })),
    ...areas
      .filter(({ name }) => isNamed(name))
      .slice(0, OFFERED_MAX)
      .map(({ id, name }) => ({
        icon: 'areas' as const,
        name,
        detail: 'Area',
        address: areaAddress(id),
        imei: null,
      })),
    ...devices.slice(0, OFFERED_MAX).map((device) => ({
      icon: 'devices' as const,
      name: nameOf(device),
      detail: [device.plate, imeisShown.value === '' ? null : device.imei]
        .filter((part) => part !== null)
        .join(', '),
      address: vehicleAddress(device.imei),
      imei: device.imei,
    })),
  ];
}

/** A button, and Ctrl-K or Cmd-K, that open a search over everything. */
export function Palette(): VNode {
  const [isOpen, setOpen] = useState(false);
  useEffect(() => {
    const onKeyDown = (event: KeyboardEvent): void => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.altKey) return;
      event.preventDefault();
      setOpen(true);
    };
    addEventListener('keydown', onKeyDown);
    return () => removeEventListener('keydown', onKeyDown);
  }, []);
  return html`<button type="button" class="quiet" title="Ctrl K" aria-haspopup="dialog" onClick=${() => setOpen(true)}><${Icon} name="search" /><span>Go to</span></button>
    ${isOpen && html`<${Opened} close=${() => setOpen(false)} />`}`;
}

const LIST_ID = 'targets';

function Opened({ close }: { close: () => void }): VNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const [text, setText] = useState('');
  const [at, setAt] = useState(0);
  useLayoutEffect(() => dialog.current?.showModal(), []);
  const found = useFound({ statuses: [], group: '', text }, OFFERED_MAX);
  const targets = targetsOf(text, useAreas(true), found.isAsking ? [] : found.found);
  const active = Math.min(at, targets.length - 1);
  const end = (): void => {
    dialog.current?.close(); // gives the focus back
    close();
  };
  const go = (target: Target | undefined): void => {
    if (target === undefined) return;
    end();
    location.hash = target.address;
    if (target.imei !== null) seek(target.imei);
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step !== undefined) setAt((active + step + targets.length) % Math.max(1, targets.length));
    else if (event.key === 'Enter') go(targets[active]);
    else if (event.key === 'Escape')
      end(); // a field of a search only empties itself
    else return;
    event.preventDefault();
  };
  const onInput = (event: InputEvent): void => {
    setText((event.currentTarget as HTMLInputElement).value);
    setAt(0);
  };
  return html`<dialog class="palette" ref=${dialog} aria-label="Go to" onClose=${close}
      onClick=${(event: MouseEvent) => event.target === dialog.current && end()}>
    <input type="search" role="combobox" aria-label="A vehicle, an area or a view" placeholder="Name, plate, IMEI, area or view"
      autocomplete="off" aria-expanded=${targets.length > 0} aria-controls=${LIST_ID}
      aria-activedescendant=${targets.length > 0 ? `${LIST_ID}-${active}` : undefined}
      value=${text} onInput=${onInput} onKeyDown=${onKeyDown} />
    <ul role="listbox" id=${LIST_ID} aria-label="Found">${targets.map(
      (
        target,
        n,
      ) => html`<li key=${target.address} role="option" id=${`${LIST_ID}-${n}`} aria-selected=${n === active}
        onMouseMove=${() => setAt(n)} onClick=${() => go(target)}>
        <${Icon} name=${target.icon} /><span>${target.name}</span><small>${target.detail}</small>
      </li>`,
    )}</ul>
    <p class="empty" role="status">${found.isAsking ? 'Looking…' : (found.problem ?? (targets.length === 0 ? 'Nothing fits. Try fewer letters.' : ''))}</p>
  </dialog>`;
}
