import { isLatLng, type LatLng } from '../../geo/latLng.ts';
import { parseNameText } from '../../lib/nameText.ts';
import { isJsonObject, isMissing } from '../../lib/parseJson.ts';
import { fail, ok } from '../../lib/result.ts';
import { AREA_TYPES, type AreaType } from '../area.ts';
import type { Sent } from './areaDraft.ts';
import { AREA_ERRORS } from './areaErrors.ts';
import { AREA_LIMITS as LIMITS } from './areaLimits.ts';
import { isExternalId } from './externalId.ts';

// Each of these reads one field of a JSON body. undefined and null are "not sent" unless said otherwise.

/** Trimmed text of 1 to 100 code points that Postgres can store: no control characters, no lone surrogates. */
export function sentName(value: unknown): Sent<string> {
  if (isMissing(value)) return undefined;
  if (typeof value !== 'string') return fail(AREA_ERRORS.nameRequired);
  const name = parseNameText(value, LIMITS.nameMaxCodePoints);
  return name.ok ? name : fail(NAME_FAULTS[name.error]);
}

const NAME_FAULTS = {
  blank: AREA_ERRORS.nameRequired,
  not_plain: AREA_ERRORS.nameInvalid,
  too_long: AREA_ERRORS.nameTooLong,
} as const;

/** #rrggbb in either case. */
export function sentColor(value: unknown): Sent<string> {
  if (isMissing(value)) return undefined;
  return typeof value === 'string' && COLOR.test(value) ? ok(value) : fail(AREA_ERRORS.colorInvalid);
}

export function sentType(value: unknown): Sent<AreaType> {
  if (isMissing(value)) return undefined;
  const type = AREA_TYPES.find((known) => known === value);
  return type ? ok(type) : fail(AREA_ERRORS.typeInvalid);
}

export function sentCenter(value: unknown): Sent<LatLng> {
  if (isMissing(value)) return undefined;
  const center = parseLatLng(value);
  return center ? ok(center) : fail(AREA_ERRORS.centerInvalid);
}

/** The positions as sent; what is not an array holds too few. */
export function sentPositions(value: unknown): Sent<LatLng[]> {
  if (isMissing(value)) return undefined;
  if (!Array.isArray(value)) return fail(AREA_ERRORS.pointsTooFew);
  const positions: LatLng[] = [];
  for (const element of value) {
    const position = parseLatLng(element);
    if (!position) return fail(AREA_ERRORS.pointsInvalid);
    positions.push(position);
  }
  return ok(positions);
}

/** A number as sent; NaN, which no range holds, for anything else. */
export function sentNumber(value: unknown): number | undefined {
  if (isMissing(value)) return undefined;
  return typeof value === 'number' ? value : Number.NaN;
}

/** An area code; here null is sent: it removes the stored one. */
export function sentExternalId(value: unknown): Sent<string | null> {
  if (value === undefined) return undefined;
  if (value === null) return ok(null);
  return typeof value === 'string' && isExternalId(value) ? ok(value) : fail(AREA_ERRORS.externalIdInvalid);
}

export function sentDwellSeconds(value: unknown): Sent<number> {
  if (isMissing(value)) return undefined;
  const sound =
    Number.isInteger(value) && (value as number) >= 0 && (value as number) <= LIMITS.maxDwellSeconds;
  return sound ? ok((value as number) + 0) : fail(AREA_ERRORS.dwellOutOfRange);
}

export const COLOR = /^#[0-9a-fA-F]{6}$/;

/** {lat, lng} with both in range, -0 as 0; null for anything else. */
function parseLatLng(value: unknown): LatLng | null {
  if (!isJsonObject(value)) return null;
  const lat = value['lat'];
  const lng = value['lng'];
  if (typeof lat !== 'number' || typeof lng !== 'number' || !isLatLng(lat, lng)) return null;
  return { lat: lat + 0, lng: lng + 0 };
}
