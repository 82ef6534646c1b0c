import { useMemo } from 'preact/hooks';
import { useLoaded, usePaced } from '../api.ts';
import { type Filters, filterQuery, hasStatus, passesBesideStatus } from '../filters.ts';
import { findDevices, type KnownDevice, knownDevice } from '../fleet.ts';
import { changedDevice, isLarge } from '../largeFleet.ts';
import { fleet, fleetSize } from '../liveFleet.ts';
import type { Device } from '../types.ts';

/** Each call counts: letters that are typed one after the other are sought together. */
const TYPED_MS = 1_000;

export interface Found {
  /** How many devices pass. */
  readonly count: number;
  readonly first: readonly KnownDevice[];
  /** Why they could not be asked for; null: they were. */
  readonly problem: string | null;
  /** What is here is not what was asked for yet. */
  readonly isAsking: boolean;
  reload(): void;
}

const NOTHING = { first: [], count: 0, problem: null, isAsking: false, reload: () => undefined };

/**
 * Devices that pass, `max` at most, from an offset on; null: none is sought. A fleet that is held is sorted by name; a large
 * one by IMEI, by the service, which finds the text in names and plates and at the beginning of IMEIs. One that is held is
 * looked through again with each `round`.
 */
export function useFound(asked: Filters | null, max: number, { round = 0, offset = 0 } = {}): Found {
  const path = asked === null ? null : devicesPath(asked, max, offset);
  const paced = usePaced(path, TYPED_MS);
  const { reply, reload } = useLoaded<readonly Device[]>(isLarge.value ? paced : null);
  const isHeld = asked !== null && !isLarge.value;
  const held = useMemo(
    () => (isHeld ? findDevices(passing(asked), '', max) : null),
    [isHeld, asked, max, round],
  );
  if (asked === null) return NOTHING;
  if (held !== null) return { ...NOTHING, ...held };
  const isAsking = reply === null || paced !== path;
  if (reply === null) return { ...NOTHING, isAsking };
  if (!reply.ok) return { ...NOTHING, problem: reply.message, reload };
  const first = reply.data.map((device) => fleet.get(device.imei) ?? knownDevice(changedDevice(device)));
  return { count: reply.meta.total ?? fleetSize(), first, problem: null, isAsking, reload };
}

function* passing(asked: Filters): Iterable<KnownDevice> {
  const passes = passesBesideStatus(asked);
  for (const device of fleet.values()) if (hasStatus(asked, device) && passes(device)) yield device;
}

export function devicesPath(asked: Filters, limit: number, offset: number): string {
  const text = asked.text.trim();
  const query = [
    `limit=${limit}`,
    `offset=${offset}`,
    text === '' ? '' : `q=${encodeURIComponent(text)}`,
    filterQuery(asked),
  ];
  return `/api/v1/devices?${query.filter((part) => part !== '').join('&')}`;
}
