import type { Worlds } from '../access/credentials.ts';
import { isImei } from '../devices/device.ts';
import { distanceM, isLatLng } from '../geo/wgs84.ts';
import { isJsonObject, isMissing, parseNameText } from '../lib/parseText.ts';
import { BODY_INVALID, type FieldError, fail, ok, type Result } from '../lib/result.ts';
import { DAY_MS, parseIsoMs } from '../lib/time.ts';

/** What a share shows of a vehicle beside its place. */
export const SHOWN_PARTS = ['name', 'plate', 'speed', 'trail'] as const;
export type ShownPart = (typeof SHOWN_PARTS)[number];

export const SHARE_LIMITS = {
  devices: 20,
  /** Active ones of an account. */
  perOwner: 1_000,
  days: 30,
  delaySeconds: 3_600,
  hidden: 10,
  hiddenRadiusM: 5_000,
  nameMaxCodePoints: 100,
} as const;

/** A place within which a vehicle is not shown. */
export interface HiddenPlace {
  readonly lat: number;
  readonly lng: number;
  readonly radius_m: number;
}

export interface ShareDraft {
  /** Each once. */
  readonly imeis: readonly string[];
  readonly name: string | null;
  readonly expiresAt: Date;
  readonly untilAreaId: number | null;
  readonly delaySeconds: number;
  readonly hide: readonly HiddenPlace[];
  readonly show: readonly ShownPart[];
}

/** All that memory has of a share. */
export interface ShareState {
  readonly id: number;
  readonly accountId: number;
  readonly worldIds: Worlds;
  readonly fingerprint: string;
  readonly name: string | null;
  /** Ids of devices, in the order in which they were named. */
  readonly deviceIds: readonly number[];
  readonly delayMs: number;
  readonly hide: readonly HiddenPlace[];
  readonly show: ReadonlySet<ShownPart>;
  readonly expiresAtMs: number;
  /** Ended by hand or by an arrival, or its owner is inactive. */
  readonly hasEnded: boolean;
}

export function isOver({ hasEnded, expiresAtMs }: ShareState, nowMs: number): boolean {
  return hasEnded || expiresAtMs <= nowMs;
}

/** Whether a place is one at which the vehicles of a share are not shown; the edge is. */
export function isHidden(hide: readonly HiddenPlace[], lat: number, lng: number): boolean {
  return hide.some((place) => distanceM(place.lat, place.lng, lat, lng) <= place.radius_m);
}

const invalid = (field: string, message: string): FieldError => ({ field, code: 'INVALID', message });

export const SHARE_ERRORS = {
  bodyInvalid: BODY_INVALID,
  limitReached: {
    field: null,
    code: 'LIMIT_REACHED',
    message: `an account has at most ${SHARE_LIMITS.perOwner} shares that have not ended`,
  },
  devicesRequired: { field: 'devices', code: 'REQUIRED', message: 'devices must name at least one IMEI' },
  devicesInvalid: invalid('devices', 'devices must be a list of IMEIs of 14 to 17 digits'),
  devicesTooMany: {
    field: 'devices',
    code: 'TOO_LONG',
    message: `devices names more than ${SHARE_LIMITS.devices}`,
  },
  devicesUnknown: invalid('devices', 'devices names a device that does not exist'),
  nameInvalid: invalid(
    'name',
    `name must be plain text of up to ${SHARE_LIMITS.nameMaxCodePoints} characters`,
  ),
  expiresAtRequired: { field: 'expires_at', code: 'REQUIRED', message: 'expires_at is required' },
  expiresAtInvalid: invalid(
    'expires_at',
    `expires_at must be an ISO 8601 time within the next ${SHARE_LIMITS.days} days`,
  ),
  untilAreaInvalid: invalid('until_area_id', 'until_area_id must be the id of an existing area'),
  delayInvalid: invalid(
    'delay_seconds',
    `delay_seconds must be a whole number from 0 to ${SHARE_LIMITS.delaySeconds}`,
  ),
  hideInvalid: invalid(
    'hide',
    `hide must be a list of up to ${SHARE_LIMITS.hidden} circles: lat, lng and a radius_m above 0, up to ${SHARE_LIMITS.hiddenRadiusM}`,
  ),
  showInvalid: invalid('show', `show must be a list of some of ${SHOWN_PARTS.join(', ')}`),
} as const satisfies Readonly<Record<string, FieldError>>;

/** The body that makes a share, with every field that is wrong. null counts as missing, unknown fields are ignored. */
export function parseShare(body: unknown, nowMs: number): Result<ShareDraft, readonly FieldError[]> {
  if (!isJsonObject(body)) return fail([SHARE_ERRORS.bodyInvalid]);
  const imeis = parseDevices(body['devices']);
  const name = parseShareName(body['name']);
  const expiresAt = parseEnd(body['expires_at'], nowMs);
  const untilAreaId = parseAreaId(body['until_area_id']);
  const delaySeconds = parseDelay(body['delay_seconds']);
  const hide = parseHide(body['hide']);
  const show = parseShow(body['show']);
  if (imeis.ok && name.ok && expiresAt.ok && untilAreaId.ok && delaySeconds.ok && hide.ok && show.ok) {
    return ok({
      imeis: imeis.value,
      name: name.value,
      expiresAt: expiresAt.value,
      untilAreaId: untilAreaId.value,
      delaySeconds: delaySeconds.value,
      hide: hide.value,
      show: show.value,
    });
  }
  const read = [imeis, name, expiresAt, untilAreaId, delaySeconds, hide, show];
  return fail(read.flatMap((field) => (field.ok ? [] : [field.error])));
}

function parseDevices(sent: unknown): Result<readonly string[], FieldError> {
  if (isMissing(sent) || (Array.isArray(sent) && sent.length === 0))
    return fail(SHARE_ERRORS.devicesRequired);
  if (!Array.isArray(sent)) return fail(SHARE_ERRORS.devicesInvalid);
  if (sent.length > SHARE_LIMITS.devices) return fail(SHARE_ERRORS.devicesTooMany);
  return sent.every((imei) => typeof imei === 'string' && isImei(imei))
    ? ok([...new Set(sent)])
    : fail(SHARE_ERRORS.devicesInvalid);
}

function parseShareName(sent: unknown): Result<string | null, FieldError> {
  if (isMissing(sent)) return ok(null);
  const name = typeof sent === 'string' ? parseNameText(sent, SHARE_LIMITS.nameMaxCodePoints) : fail('blank');
  return name.ok ? name : fail(SHARE_ERRORS.nameInvalid);
}

function parseEnd(sent: unknown, nowMs: number): Result<Date, FieldError> {
  if (isMissing(sent)) return fail(SHARE_ERRORS.expiresAtRequired);
  const ms = typeof sent === 'string' ? parseIsoMs(sent) : null;
  const isWithin = ms !== null && ms > nowMs && ms <= nowMs + SHARE_LIMITS.days * DAY_MS;
  return isWithin ? ok(new Date(ms)) : fail(SHARE_ERRORS.expiresAtInvalid);
}

function parseAreaId(sent: unknown): Result<number | null, FieldError> {
  if (isMissing(sent)) return ok(null);
  return Number.isSafeInteger(sent) && Number(sent) > 0
    ? ok(Number(sent))
    : fail(SHARE_ERRORS.untilAreaInvalid);
}

function parseDelay(sent: unknown): Result<number, FieldError> {
  if (isMissing(sent)) return ok(0);
  const isWithin = Number.isInteger(sent) && Number(sent) >= 0 && Number(sent) <= SHARE_LIMITS.delaySeconds;
  return isWithin ? ok(Number(sent)) : fail(SHARE_ERRORS.delayInvalid);
}

function parseHide(sent: unknown): Result<readonly HiddenPlace[], FieldError> {
  if (isMissing(sent)) return ok([]);
  if (!Array.isArray(sent) || sent.length > SHARE_LIMITS.hidden) return fail(SHARE_ERRORS.hideInvalid);
  const places = sent.map((place: unknown) => (isJsonObject(place) ? hiddenPlace(place) : null));
  return places.every((place) => place !== null) ? ok(places) : fail(SHARE_ERRORS.hideInvalid);
}

function hiddenPlace({ lat, lng, radius_m }: Record<string, unknown>): HiddenPlace | null {
  if (typeof lat !== 'number' || typeof lng !== 'number' || !isLatLng(lat, lng)) return null;
  const isRadius = typeof radius_m === 'number' && radius_m > 0 && radius_m <= SHARE_LIMITS.hiddenRadiusM;
  return isRadius ? { lat, lng, radius_m } : null;
}

function parseShow(sent: unknown): Result<readonly ShownPart[], FieldError> {
  if (isMissing(sent)) return ok(['name']);
  if (!Array.isArray(sent)) return fail(SHARE_ERRORS.showInvalid);
  const isKnown = sent.every((part) => SHOWN_PARTS.some((known) => known === part));
  return isKnown ? ok(SHOWN_PARTS.filter((part) => sent.includes(part))) : fail(SHARE_ERRORS.showInvalid);
}
