import { AREA_LIMITS } from '../../areas/areaFields.ts';
import { isImei } from '../../devices/device.ts';
import { isJsonObject, isMissing, type JsonObject } from '../../lib/parseText.ts';
import { BODY_INVALID, type FieldError, fail, ok, type Result } from '../../lib/result.ts';
import { DAY_MS, formatDuration, parseIsoMs } from '../../lib/time.ts';

export const BACKTEST_LIMITS = { windowDays: 31, devices: 10_000, dwellValues: 10 } as const;

const error = (field: string, code: FieldError['code'], message: string): FieldError => ({
  field,
  code,
  message,
});

export const BACKTEST_ERRORS = {
  areaRequired: error('area', 'REQUIRED', 'area, the body of a new area, or area_id is required'),
  areaTwice: error('area_id', 'INVALID', 'area_id and area cannot both be given'),
  areaIdInvalid: error('area_id', 'INVALID', 'area_id must be a positive whole number'),
  devicesInvalid: error(
    'devices',
    'INVALID',
    'devices must be a list of at least one IMEI: text of 14 to 17 digits',
  ),
  tooManyDevices: error(
    'devices',
    'LIMIT_REACHED',
    `devices has more than ${BACKTEST_LIMITS.devices} IMEIs; send them in several calls`,
  ),
  fromRequired: error('from', 'REQUIRED', 'from is required: a time in ISO 8601'),
  fromInvalid: error('from', 'INVALID', 'from must be a time in ISO 8601'),
  toRequired: error('to', 'REQUIRED', 'to is required: a time in ISO 8601'),
  toInvalid: error('to', 'INVALID', 'to must be a time in ISO 8601'),
  dwellInvalid: error(
    'dwell_seconds',
    'OUT_OF_RANGE',
    `dwell_seconds must be a whole number from 0 to ${AREA_LIMITS.maxDwellSeconds}, or a list of at least one`,
  ),
  tooManyDwells: error(
    'dwell_seconds',
    'LIMIT_REACHED',
    `dwell_seconds has more than ${BACKTEST_LIMITS.dwellValues} values; send them in several calls`,
  ),
} as const;

/** A window that is so much too long. */
export function windowTooLong(excessMs: number): FieldError {
  const excess = `from and to are ${formatDuration(excessMs)} more than ${BACKTEST_LIMITS.windowDays} days apart`;
  return error('from', 'OUT_OF_RANGE', `${excess}; narrow from or to`);
}

/** More points than a backtest reads. */
export function tooManyPoints(points: number, devices: number, pointsMax: number): FieldError {
  const first = devices === 1 ? 'device alone has' : `${devices} devices alone have`;
  const message = `the first ${first} ${points} points or more, at most ${pointsMax} are read; narrow devices, from or to`;
  return error('devices', 'LIMIT_REACHED', message);
}

/** More work than a backtest may be, however few its points are. */
export function tooMuchWork(workMs: number): FieldError {
  const more = `the replay takes more than ${formatDuration(workMs)} of processor time`;
  const message = `${more}; narrow devices, from or to, or take an area of fewer points`;
  return error('devices', 'LIMIT_REACHED', message);
}

/** The body of a backtest, but for its area. */
export interface BacktestBody {
  /** The draft, not parsed yet; null: `areaId` is given. */
  readonly area: unknown;
  readonly areaId: number | null;
  /** Each once; null: every device. */
  readonly imeis: readonly string[] | null;
  readonly fromMs: number;
  readonly toMs: number;
  /** As they were sent; null: the area's own. */
  readonly dwellSeconds: readonly number[] | null;
}

/** What was sent, or every invalid field; `area` is there in both, since its own errors are reported beside the others. */
export function readBacktest(
  body: unknown,
): Result<BacktestBody, { readonly errors: readonly FieldError[]; readonly area: unknown }> {
  if (!isJsonObject(body)) return fail({ errors: [BODY_INVALID], area: null });
  const errors: FieldError[] = [];
  const take = <T>(read: Result<T, FieldError>, fallback: T): T => {
    if (read.ok) return read.value;
    errors.push(read.error);
    return fallback;
  };
  const area = isMissing(body['area']) ? null : body['area'];
  const areaId = take(readAreaId(body['area_id'], area !== null), null);
  const imeis = take(readImeis(body['devices']), null);
  const fromMs = take(readTime(body, 'from'), null);
  const toMs = take(readTime(body, 'to'), null);
  const dwellSeconds = take(readDwells(body['dwell_seconds']), null);
  if (fromMs !== null && toMs !== null) {
    const excessMs = toMs - fromMs - BACKTEST_LIMITS.windowDays * DAY_MS;
    if (excessMs > 0) errors.push(windowTooLong(excessMs));
  }
  if (errors.length > 0 || fromMs === null || toMs === null) return fail({ errors, area });
  return ok({ area, areaId, imeis, fromMs, toMs, dwellSeconds });
}

function readAreaId(sent: unknown, hasArea: boolean): Result<number | null, FieldError> {
  if (isMissing(sent)) return hasArea ? ok(null) : fail(BACKTEST_ERRORS.areaRequired);
  if (hasArea) return fail(BACKTEST_ERRORS.areaTwice);
  return isWhole(sent) && sent > 0 ? ok(sent) : fail(BACKTEST_ERRORS.areaIdInvalid);
}

function readImeis(sent: unknown): Result<readonly string[] | null, FieldError> {
  if (isMissing(sent)) return ok(null);
  if (!Array.isArray(sent) || sent.length === 0) return fail(BACKTEST_ERRORS.devicesInvalid);
  if (sent.length > BACKTEST_LIMITS.devices) return fail(BACKTEST_ERRORS.tooManyDevices);
  const list: readonly unknown[] = sent;
  const imeis = list.filter((imei) => typeof imei === 'string').filter(isImei);
  return imeis.length === list.length ? ok([...new Set(imeis)]) : fail(BACKTEST_ERRORS.devicesInvalid);
}

function readTime(body: JsonObject, name: 'from' | 'to'): Result<number | null, FieldError> {
  const sent = body[name];
  if (isMissing(sent)) return fail(BACKTEST_ERRORS[`${name}Required`]);
  const ms = typeof sent === 'string' ? parseIsoMs(sent) : null;
  return ms === null ? fail(BACKTEST_ERRORS[`${name}Invalid`]) : ok(ms);
}

function readDwells(sent: unknown): Result<readonly number[] | null, FieldError> {
  if (isMissing(sent)) return ok(null);
  const list: readonly unknown[] = Array.isArray(sent) ? sent : [sent];
  if (list.length > BACKTEST_LIMITS.dwellValues) return fail(BACKTEST_ERRORS.tooManyDwells);
  const values = list.filter(isDwell);
  return values.length > 0 && values.length === list.length ? ok(values) : fail(BACKTEST_ERRORS.dwellInvalid);
}

const isWhole = (value: unknown): value is number => Number.isSafeInteger(value);
const isDwell = (value: unknown): value is number =>
  isWhole(value) && value >= 0 && value <= AREA_LIMITS.maxDwellSeconds;
