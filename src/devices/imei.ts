import { type Answer, errorAnswer } from '../http/answer.ts';
import type { DescribedError } from '../http/openapi/operation.ts';
import type { Parameter } from '../http/parameters.ts';
import { isBlank } from '../http/parameters.ts';

/** An IMEI (15 digits), without its check digit (14) or with a software version (16, 17). */
export const IMEI = /^[0-9]{14,17}$/;

export function isImei(text: string): boolean {
  return IMEI.test(text);
}

export const DEVICE: Parameter = {
  name: 'device',
  in: 'query',
  required: false,
  description: 'The IMEI of one device. An unknown one gives an empty list.',
  schema: { type: 'string', pattern: IMEI.source },
};

/** The error of a malformed IMEI, before any lookup; null when it is well formed. */
export function imeiError(imei: string): Answer | null {
  if (isBlank(imei)) return errorAnswer('IMEI_REQUIRED');
  return isImei(imei) ? null : errorAnswer('BAD_REQUEST', IMEI_MESSAGE);
}

/** What is answered to an IMEI in another form. */
export const IMEI_MESSAGE = 'an IMEI has 14 to 17 digits';

/** The errors of a route about one device. */
export const ONE_DEVICE: readonly DescribedError[] = [
  ['BAD_REQUEST', IMEI_MESSAGE],
  'IMEI_REQUIRED',
  'DEVICE_NOT_FOUND',
];

// IMEIs as two numbers, in the order of their texts: the first 15 digits, and what follows them.

const HEAD_DIGITS = 15;

/** The first 15 digits as a number; a missing one counts as 0. */
export function imeiHead(imei: string): number {
  return Number(imei.length === HEAD_DIGITS ? imei : imei.slice(0, HEAD_DIGITS).padEnd(HEAD_DIGITS, '0'));
}

/** 0: there are 14 digits. 1: 15. Above: the digits after those, of which each has eleven ways to go on. */
export function imeiTail(imei: string): number {
  if (imei.length <= HEAD_DIGITS) return imei.length - HEAD_DIGITS + 1;
  const [first = '0', second] = imei.slice(HEAD_DIGITS);
  return 2 + 11 * Number(first) + (second === undefined ? 0 : 1 + Number(second));
}
