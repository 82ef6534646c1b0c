import { useMemo } from 'preact/hooks';
import { useLoaded, usePaced } from '../api.ts';
import { type Filters, filterQuery, passing } from '../filters.ts';
import { type KnownDevice, knownDevice } from '../fleet.ts';
import { changedDevice, isLarge } from '../largeFleet.ts';
import { fleet, fleetSize } from '../liveFleet.ts';
import type { Device } from '../types.ts';

/** Each call counts: letters that are typed one after the other are sought together. */
const TYPED_MS = 1_000;
/**
 * To look for devices in the fleet that the page holds takes a millisecond for so many. The larger the fleet, the less often
 * that is done: it takes at most a hundredth of the time.
 */
const LOOKED_THROUGH_PER_MS = 10_000;

export interface Found {
  /** How many devices pass. */
  readonly count: number;
  /** All of them; of a fleet that is not held, the part that was asked for. */
  readonly found: readonly KnownDevice[];
  /** Why they could not be asked for; null: they were. */
  readonly problem: string | null;
  /** What is here is not what was asked for yet. */
  readonly isAsking: boolean;
  reload(): void;
}

const NOTHING = { found: [], count: 0, problem: null, isAsking: false, reload: () => undefined };

/**
 * Devices that pass; null: none is sought. A fleet that is held is sorted by name, and is looked through again as it changes.
 * Of a large one there are `max` at most, from an offset on, by IMEI: the service finds the text in names and plates and at
 * the beginning of IMEIs.
 */
export function useFound(asked: Filters | null, max: number, offset = 0): Found {
  const path = asked === null ? null : devicesPath(asked, max, offset);
  const paced = usePaced(path, TYPED_MS);
  const { reply, reload } = useLoaded<readonly Device[]>(isLarge.value ? paced : null);
  const round = usePaced(asked === null ? 0 : fleet.round.value, (100 * fleet.size) / LOOKED_THROUGH_PER_MS);
  const isHeld = asked !== null && !isLarge.value;
  const held = useMemo(() => (isHeld ? passing(asked, fleet.sorted()) : null), [isHeld, asked, round]);
  if (asked === null) return NOTHING;
  if (held !== null) return { ...NOTHING, count: held.length, found: held };
  const isAsking = reply === null || paced !== path;
  if (reply === null) return { ...NOTHING, isAsking };
  if (!reply.ok) return { ...NOTHING, problem: reply.message, reload };
  const found = reply.data.map((device) => fleet.get(device.imei) ?? knownDevice(changedDevice(device)));
  return { count: reply.meta.total ?? fleetSize(), found, problem: null, isAsking, reload };
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
