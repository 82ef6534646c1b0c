import type { KnownDevice } from './knownDevice.ts';

const { compare } = new Intl.Collator();

/**
 * Devices whose name, plate or IMEI contains the text, whatever its case and blanks: how many, and the first `max` of
 * them by name, then IMEI.
 */
export function findDevices(
  devices: Iterable<KnownDevice>,
  text: string,
  max: number,
): { count: number; first: KnownDevice[] } {
  const wanted = plain(text);
  const first: KnownDevice[] = [];
  let count = 0;
  for (const device of devices) {
    if (!fits(device, wanted)) continue;
    count++;
    // Only the first are kept in order: to sort 100 000 names takes longer than anybody waits for a key.
    const last = first[max - 1];
    if (last !== undefined && inOrder(last, device) <= 0) continue;
    first.splice(placeOf(device, first), 0, device);
    if (first.length > max) first.pop();
  }
  return { count, first };
}

/** What people call it. */
export function nameOf({ name, plate, imei }: Pick<KnownDevice, 'name' | 'plate' | 'imei'>): string {
  return name ?? plate ?? imei;
}

function fits({ name, plate, imei }: KnownDevice, wanted: string): boolean {
  if (wanted === '') return true;
  return [name, plate, imei].some((value) => value !== null && plain(value).includes(wanted));
}

function placeOf(device: KnownDevice, sorted: readonly KnownDevice[]): number {
  let low = 0;
  let high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (inOrder(sorted[middle] as KnownDevice, device) <= 0) low = middle + 1;
    else high = middle;
  }
  return low;
}

function inOrder(a: KnownDevice, b: KnownDevice): number {
  return compare(nameOf(a), nameOf(b)) || compare(a.imei, b.imei);
}

function plain(text: string): string {
  const lower = text.toLowerCase();
  return /\s/.test(lower) ? lower.replaceAll(/\s/g, '') : lower;
}
