import type { Worlds } from '../../access/credentials.ts';
import { type Answer, errorAnswer } from '../../http/answer.ts';
import {
  isBlank,
  listParameter,
  optionalParameter,
  type Parameter,
  parseDecimal,
  type Query,
} from '../../http/parameters.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { DEVICE_STATUSES, type DeviceStatus, MOVING_FROM_KMH, onlineUntilMs, statusAt } from '../device.ts';

/** Which devices are asked for. A device passes when it passes every part. */
export interface DeviceFilter {
  /** The same text for equal filters, whatever the order of their words; without `search`. */
  readonly key: string;
  /** Those of these statuses; null: of any. */
  readonly statuses: ReadonlySet<DeviceStatus> | null;
  /** Those that belong to at least one of these groups; null: whatever their groups. */
  readonly groups: ReadonlySet<string> | null;
  /** Those that belong to at least one of the groups to which the caller is limited; null: it is not. */
  readonly seen: ReadonlySet<string> | null;
  /** Those whose newest point is at most this old; Infinity: also those without one. */
  readonly maxAgeMs: number;
  /** Those whose name or plate has this part, or whose IMEI begins with it (see foldedText); null: all. */
  readonly search: string | null;
}

export const GROUPS_MAX = 20;
export const AGE_MAX_SECONDS = 31_536_000;
const SEARCH_MAX_CHARS = 100;

export const STATUS = listParameter(
  'status',
  DEVICE_STATUSES,
  'Only devices of these statuses, separated by commas. Statuses are those of the moment of the call.',
);

export const GROUP = {
  ...optionalParameter(
    'group',
    `Only devices that belong to at least one of these groups, separated by commas: at most ${GROUPS_MAX}. Names are compared as they are written.`,
    { type: 'array', items: { type: 'string' }, minItems: 1, maxItems: GROUPS_MAX },
  ),
  explode: false,
  errorMessage: `group must be 1 to ${GROUPS_MAX} names of groups, separated by commas`,
} as const;

export const MAX_AGE = {
  ...optionalParameter(
    'max_age_seconds',
    'Only devices whose newest point is at most this old, by its GPS time and the clock of the service. A fraction is cut.',
    { type: 'integer', minimum: 1, maximum: AGE_MAX_SECONDS },
  ),
  errorMessage: `max_age_seconds must be a number from 1 to ${AGE_MAX_SECONDS}`,
} as const;

const SEARCH = {
  ...optionalParameter(
    'q',
    'Only devices with this part in their name or plate, or at the beginning of their IMEI. Letters match in either case.',
    { type: 'string', minLength: 1, maxLength: SEARCH_MAX_CHARS },
  ),
  errorMessage: `q must have 1 to ${SEARCH_MAX_CHARS} characters`,
} as const;

/** The parameters of every route that filters devices. */
export const FILTERS: readonly Parameter[] = [STATUS, GROUP, MAX_AGE];
export const FILTERS_AND_SEARCH: readonly Parameter[] = [...FILTERS, SEARCH];

/** What is answered to a filter that cannot be read. */
export const FILTER_ERRORS = [STATUS, GROUP, MAX_AGE].map(
  ({ errorMessage }) => ['BAD_REQUEST', errorMessage] as const,
);
export const SEARCH_ERROR = ['BAD_REQUEST', SEARCH.errorMessage] as const;

/**
 * The filter that a caller of these worlds asks for with a query, null where every device passes; or the 400 that says what
 * is wrong. Blank parameters are none.
 */
export function readFilter(query: Query, worlds: Worlds): Result<DeviceFilter | null, Answer> {
  const { status, group, max_age_seconds: maxAge } = query;
  const isSent = status !== undefined || group !== undefined || maxAge !== undefined;
  if (!isSent && worlds.groups === undefined) return NO_FILTER;
  return filterOf(
    worlds,
    wordsOf(status),
    wordsOf(group),
    maxAge === undefined || isBlank(maxAge) ? null : (parseDecimal(maxAge) ?? Number.NaN),
  );
}

/** The same with `q`. */
export function readFilterAndSearch(query: Query, worlds: Worlds): Result<DeviceFilter | null, Answer> {
  const filter = readFilter(query, worlds);
  const { q } = query;
  if (!filter.ok || q === undefined || isBlank(q)) return filter;
  if ([...q].length > SEARCH_MAX_CHARS) return fail(errorAnswer(...SEARCH_ERROR));
  return ok({ ...(filter.value ?? EVERY_DEVICE), search: foldedText(q) });
}

const NO_FILTER: Result<DeviceFilter | null, Answer> = ok(null);
const EVERY_DEVICE: DeviceFilter = {
  key: '',
  statuses: null,
  groups: null,
  seen: null,
  maxAgeMs: Number.POSITIVE_INFINITY,
  search: null,
};

/** The same filter of what a caller of these worlds sees. */
export function filterSeen({ groups }: Worlds, filter: DeviceFilter | null): DeviceFilter | null {
  if (groups === undefined || filter?.seen === groups.names) return filter;
  const { key, ...asked } = filter ?? EVERY_DEVICE;
  return { ...asked, key: JSON.stringify([key, groups.key]), seen: groups.names };
}

/** Of a filter only what the caller sees; null: every device. */
export function seenAlone(filter: DeviceFilter | null): DeviceFilter | null {
  if (filter === null || filter.seen === null) return null;
  return { ...EVERY_DEVICE, key: JSON.stringify([...filter.seen]), seen: filter.seen };
}

/** Whether a device with these groups passes the parts of a filter that ask for groups. */
export function passesGroups({ groups, seen }: DeviceFilter, ofDevice: readonly string[]): boolean {
  return (
    (groups === null || ofDevice.some((group) => groups.has(group))) &&
    (seen === null || ofDevice.some((group) => seen.has(group)))
  );
}

export function wordsOf(sent: string | undefined): readonly string[] | null {
  return sent === undefined || isBlank(sent) ? null : sent.split(',').map((word) => word.trim());
}

/** The filter of these words, names and age; null: not sent. The error is the 400 that says what is wrong. */
export function filterOf(
  worlds: Worlds,
  statusWords: readonly string[] | null,
  groupNames: readonly string[] | null,
  maxAgeSeconds: number | null,
): Result<DeviceFilter | null, Answer> {
  const statuses = statusWords?.map((word) => DEVICE_STATUSES.find((status) => status === word)) ?? null;
  if (statuses !== null && (statuses.length === 0 || !statuses.every((status) => status !== undefined)))
    return fail(errorAnswer('BAD_REQUEST', STATUS.errorMessage));
  const areGroups =
    groupNames === null ||
    (groupNames.length >= 1 && groupNames.length <= GROUPS_MAX && !groupNames.some(isBlank));
  if (!areGroups) return fail(errorAnswer('BAD_REQUEST', GROUP.errorMessage));
  const age = maxAgeSeconds === null ? null : Math.trunc(maxAgeSeconds);
  if (age !== null && !(age >= 1 && age <= AGE_MAX_SECONDS))
    return fail(errorAnswer('BAD_REQUEST', MAX_AGE.errorMessage));
  if (statuses === null && groupNames === null && age === null)
    return worlds.groups === undefined ? NO_FILTER : ok(filterSeen(worlds, null));
  const asked: DeviceFilter = {
    key: JSON.stringify([statuses?.toSorted(), groupNames?.toSorted(), age]),
    statuses: statuses === null ? null : new Set(statuses),
    groups: groupNames === null ? null : new Set(groupNames),
    seen: null,
    maxAgeMs: age === null ? Number.POSITIVE_INFINITY : age * 1_000,
    search: null,
  };
  return ok(filterSeen(worlds, asked));
}

type TimeFilter = Pick<DeviceFilter, 'statuses' | 'maxAgeMs'>;

/** Whether a device with this newest point passes the part of a filter that time changes. `recordedAtMs`: NaN without one. */
export function passesTime(
  { statuses, maxAgeMs }: TimeFilter,
  recordedAtMs: number,
  speedKmh: number,
  nowMs: number,
): boolean {
  if (Number.isNaN(recordedAtMs))
    return maxAgeMs === Number.POSITIVE_INFINITY && (statuses === null || statuses.has('unknown'));
  if (nowMs - recordedAtMs > maxAgeMs) return false;
  return statuses === null || statuses.has(statusAt(recordedAtMs, speedKmh, nowMs));
}

/** The ages of its newest point beyond which a device may pass no longer, or pass only then; none where time changes nothing. */
export function ageLimitsMs({ statuses, maxAgeMs }: TimeFilter): number[] {
  const ofStatuses = statuses === null ? [] : [onlineUntilMs(0, MOVING_FROM_KMH), onlineUntilMs(0, 0)];
  return maxAgeMs === Number.POSITIVE_INFINITY ? ofStatuses : [...ofStatuses, maxAgeMs];
}

/** A text in which letters of either case are the same; both forms of the Greek sigma, too. */
export function foldedText(plain: string): string {
  return plain.toLowerCase().replaceAll('ς', 'σ');
}
