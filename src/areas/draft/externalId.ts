/**
 * True for a caller's own area code: 1 to 100 of the ASCII letters and digits and . _ : / @ # -, compared exactly.
 * Letters are ASCII: a code then has one spelling in every encoding of a path, in every database collation.
 */
export function isExternalId(text: string): boolean {
  return EXTERNAL_ID.test(text);
}

export const EXTERNAL_ID = /^[A-Za-z0-9._:/@#-]{1,100}$/;
