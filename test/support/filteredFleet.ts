import type { Device } from '../../src/devices/device.ts';
import { Fleet } from '../../src/devices/fleet.memory.ts';
import type { Box } from '../../src/devices/living/boxRegion.ts';
import { fieldsOf, imeiOf, positionAt } from './devices.ts';

/** The moment at which the devices of this file are asked for. */
export const NOW_MS = Date.UTC(2026, 10, 20);
const MINUTE_MS = 60_000;

/** A filter as a query says it. */
export interface Asked {
  readonly status?: string;
  readonly group?: string;
  readonly max_age_seconds?: string;
  readonly q?: string;
}

export type Random = () => number;
export const oneOf = <T>(random: Random, values: readonly T[]): T =>
  values[Math.floor(random() * values.length)] as T;

const AGES_MS = [
  ...[0, 999, 1_000, 1_001, 60_000, 10 * MINUTE_MS - 1, 10 * MINUTE_MS, 10 * MINUTE_MS + 1],
  ...[1_440 * MINUTE_MS, 1_440 * MINUTE_MS + 1, 5_000 * MINUTE_MS, -5 * MINUTE_MS],
];
const SPEEDS_KMH = [0, 4.999, 5, 80];
const GROUPS = [[], [], ['north'], ['north', 'vans'], ['vans'], ['rare'], ['a,b', 'Nord-Süd']];
const NAMES = [null, 'Van 12', 'VAN "3"', 'ΟΔΟΣ', 'Straße\\7', 'İzmir', '350'];

/** A few spots that many devices share, a town, both sides of 180°, a pole, or anywhere. */
export function anyPlace(random: Random): { lat: number; lng: number } {
  const between = (low: number, high: number) => low + random() * (high - low);
  const [lat, lng] = oneOf(random, [
    () =>
      oneOf(random, [
        [41.9, 12.5],
        [41.9, 12.5],
        [0, 180],
        [0, -180],
        [-90, 0],
        [41.9, 12.50001],
      ]),
    () => [between(41.8, 42), between(12.4, 12.6)],
    () => [between(-17, -16), random() < 0.5 ? between(179.9, 180) : between(-180, -179.9)],
    () => [90, between(-180, 180)],
    () => [between(-90, 90), between(-180, 180)],
  ])() as [number, number];
  return { lat, lng };
}

/** Gives a device another position, other fields, or both. */
export function changeDevice(fleet: Fleet, random: Random, id: number, worldIds: readonly number[]): void {
  if (random() < 0.5) {
    const name = oneOf(random, NAMES);
    const plate = random() < 0.3 ? `AB ${id} van` : null;
    const groups = oneOf(random, GROUPS);
    const imei = imeiOf((id * 7_919) % 99_991);
    fleet.putDevice(fieldsOf({ id, imei, worldId: oneOf(random, worldIds), name, plate, groups }));
  }
  if (random() < 0.9) {
    const { lat, lng } = anyPlace(random);
    const recordedAtMs = NOW_MS - oneOf(random, AGES_MS);
    fleet.move(id, positionAt(lat, lng, recordedAtMs, { speedKmh: oneOf(random, SPEEDS_KMH) }));
  }
}

/** Devices of every status, group, age and kind of place in these worlds. */
export function filledFleet(random: Random, devices: number, worldIds: readonly number[]): Fleet {
  const fleet = new Fleet();
  for (let id = 1; id <= devices; id++) {
    const imei = imeiOf((id * 7_919) % 99_991);
    fleet.putDevice(fieldsOf({ id, imei, worldId: oneOf(random, worldIds) }));
    changeDevice(fleet, random, id, worldIds);
  }
  return fleet;
}

export function anyFilter(random: Random): Asked {
  const all: Asked[] = [
    {
      status: oneOf(random, ['moving', 'parked', 'offline', 'unknown', 'moving,parked', 'offline, unknown']),
    },
    { group: oneOf(random, ['north', 'vans', 'rare', 'nobody', 'rare,north']) },
    { max_age_seconds: oneOf(random, ['1', '60', '600', '86400', '31536000']) },
  ];
  const some = all.filter(() => random() < 0.5);
  return Object.assign({}, ...(some.length === 0 ? [oneOf(random, all)] : some)) as Asked;
}

/** The rule of boxes, written once more. */
export function isInside(
  { west, south, east, north }: Box,
  position: { readonly lat: number; readonly lng: number } | null,
): boolean {
  if (position === null || position.lat < south || position.lat > north) return false;
  if (Math.abs(position.lat) === 90) return true;
  const lngs = Math.abs(position.lng) === 180 ? [180, -180] : [position.lng];
  return lngs.some((lng) => (west <= east ? lng >= west && lng <= east : lng >= west || lng <= east));
}

/** What is judged of a device. */
export interface Judged {
  readonly fields: Pick<Device['fields'], 'imei' | 'name' | 'plate' | 'groups'>;
  readonly position: { readonly recordedAtMs: number; readonly speedKmh: number } | null;
}

/** What an unfiltered fleet shows of a device, judged here. */
export function passes({ fields, position }: Judged, asked: Asked, nowMs = NOW_MS): boolean {
  const { imei, name, plate, groups } = fields;
  const ageMs = position === null ? Number.NaN : nowMs - position.recordedAtMs;
  const stands = position !== null && position.speedKmh < 5;
  const isFresh = ageMs <= (stands ? 1_440 : 10) * MINUTE_MS;
  const status = position === null ? 'unknown' : !isFresh ? 'offline' : stands ? 'parked' : 'moving';
  const part = asked.q?.toLowerCase();
  return (
    (asked.status === undefined || asked.status.split(/, ?/).includes(status)) &&
    (asked.group === undefined || asked.group.split(',').some((group) => groups.includes(group))) &&
    (asked.max_age_seconds === undefined || ageMs <= 1_000 * Number(asked.max_age_seconds)) &&
    (part === undefined ||
      imei.startsWith(part) ||
      [name, plate].some((text) => text?.toLowerCase().includes(part)))
  );
}

export function queryOf(asked: object): string {
  return `?${new URLSearchParams(asked as Record<string, string>)}`;
}
