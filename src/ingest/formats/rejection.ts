import { MINUTE_MS } from '../../lib/durations.ts';
import { formatIso } from '../../lib/isoTime.ts';
import { POINTS_PER_SECOND, type RateExceeded } from '../pointRate.ts';
import { MAX_ELEMENT_BYTES, MAX_ELEMENT_VALUES } from './heldElement.ts';

/** Why one point is not stored. `code` is on the wire and fixed, `message` is for a person. */
export interface Rejection {
  readonly code: RejectionCode;
  readonly message: string;
}

export type RejectionCode =
  | 'INVALID_BODY'
  | 'INVALID_IMEI'
  | 'INVALID_COORDINATES'
  | 'INVALID_TIMESTAMP'
  | 'FUTURE_TIMESTAMP'
  | 'TOO_OLD'
  | 'UNKNOWN_DEVICE'
  | 'RATE_EXCEEDED'
  | 'TOO_COMPLEX';

/** How far a device's clock may be ahead of the server's. */
export const FUTURE_TOLERANCE_MS = 10 * MINUTE_MS;

/** The rejection of each code. Messages speak for every wire format and never repeat the input. */
export const REJECTIONS: { readonly [Code in Exclude<RejectionCode, 'RATE_EXCEEDED'>]: Rejection } = {
  INVALID_BODY: { code: 'INVALID_BODY', message: 'the point is not a JSON object' },
  INVALID_IMEI: { code: 'INVALID_IMEI', message: 'the IMEI must be a string of 14 to 17 digits' },
  INVALID_COORDINATES: {
    code: 'INVALID_COORDINATES',
    message: 'the latitude must be a number from -90 to 90, the longitude from -180 to 180, and not both 0',
  },
  INVALID_TIMESTAMP: {
    code: 'INVALID_TIMESTAMP',
    message: 'the timestamp must be ISO 8601 text or epoch milliseconds',
  },
  FUTURE_TIMESTAMP: {
    code: 'FUTURE_TIMESTAMP',
    message: `the timestamp is more than ${FUTURE_TOLERANCE_MS / MINUTE_MS} minutes ahead of the server`,
  },
  TOO_OLD: { code: 'TOO_OLD', message: 'the timestamp is older than the longest history that is kept' },
  UNKNOWN_DEVICE: { code: 'UNKNOWN_DEVICE', message: 'no device with this IMEI is known' },
  TOO_COMPLEX: {
    code: 'TOO_COMPLEX',
    message:
      'the areas around the position take too long to evaluate, so the point is not stored; simplify or remove some of them',
  },
};

/** Says when to send the point again. */
export function rateExceeded({ retryAtMs }: RateExceeded): Rejection {
  return {
    code: 'RATE_EXCEEDED',
    message: `the device has stored more than ${POINTS_PER_SECOND} points a second over an hour; send this point again at ${formatIso(retryAtMs)} or later`,
  };
}

/** A number of seconds where milliseconds are meant would be an instant of January 1970. */
export const SECONDS_FOR_MS: Rejection = {
  code: 'TOO_OLD',
  message: 'the timestamp is a time of 1970: a number counts milliseconds, and this one looks like seconds',
};

/** A receiver without a fix sends coordinates that are leftovers. */
export const NO_FIX: Rejection = { code: 'INVALID_COORDINATES', message: 'the receiver had no valid fix' };

/** Of an element that is not read. */
export const OVERSIZED_POINT: Rejection = {
  code: 'INVALID_BODY',
  message: `the point is longer than ${MAX_ELEMENT_BYTES / 1_024} KB or has more than ${MAX_ELEMENT_VALUES} values`,
};
