import { type Answer, errorAnswer } from '../http/answer.ts';
import { isBlank } from '../http/query.ts';
import { isImei } from './imei.ts';

/** The error of a malformed IMEI, before any lookup; null when it is well formed. */
export function imeiError(imei: string): Answer | null {
  if (isBlank(imei)) return errorAnswer('IMEI_REQUIRED');
  return isImei(imei) ? null : errorAnswer('BAD_REQUEST', IMEI_MESSAGE);
}

/** What is answered to an IMEI in another form. */
export const IMEI_MESSAGE = 'an IMEI has 14 to 17 digits';
