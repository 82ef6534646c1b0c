export const IMEI = /^[0-9]{14,17}$/;

/**
 * True for text of 14 to 17 ASCII digits: an IMEI (15), without its check digit (14) or with a software version (16,
 * 17).
 */
export function isImei(text: string): boolean {
  return IMEI.test(text);
}
