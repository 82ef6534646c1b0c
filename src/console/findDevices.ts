import type { Device } from './types.ts';

/** Devices whose name, plate or IMEI contains the text, whatever its case and blanks; by name, then IMEI. */
export function findDevices(devices: Iterable<Device>, text: string): Device[] {
  const wanted = plain(text);
  return [...devices]
    .filter(({ name, plate, imei }) =>
      [name, plate, imei].some((value) => plain(value ?? '').includes(wanted)),
    )
    .sort((a, b) => nameOf(a).localeCompare(nameOf(b)) || a.imei.localeCompare(b.imei));
}

/** What people call it. */
export function nameOf({ name, plate, imei }: Pick<Device, 'name' | 'plate' | 'imei'>): string {
  return name ?? plate ?? imei;
}

function plain(text: string): string {
  return text.toLowerCase().replaceAll(/\s/g, '');
}
