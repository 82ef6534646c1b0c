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
  | 'UNKNOWN_DEVICE';

/** How far a device's clock may be ahead of the server's. */
export const FUTURE_TOLERANCE_MS = 10 * 60_000;

/** The rejection of each code. Messages speak for every wire format and never repeat the input. */
export const REJECTIONS: { readonly [Code in RejectionCode]: Rejection } = {
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
    message: `the timestamp is more than ${FUTURE_TOLERANCE_MS / 60_000} minutes ahead of the server`,
  },
  TOO_OLD: { code: 'TOO_OLD', message: 'the timestamp is older than the longest history that is kept' },
  UNKNOWN_DEVICE: { code: 'UNKNOWN_DEVICE', message: 'no device with this IMEI is known' },
};
