import fc from 'fast-check';

const SURROGATES_FROM = 0xd800;
const SURROGATES = 0x800;
const CODE_POINTS = 0x11_0000;

/**
 * A character of Unicode, assigned or not, but no half of a surrogate pair: fast-check's unit 'binary', of which each
 * process that uses it builds a table for two seconds.
 */
export const anyCharacter: fc.Arbitrary<string> = fc
  .nat(CODE_POINTS - SURROGATES - 1)
  .map((n) => String.fromCodePoint(n < SURROGATES_FROM ? n : n + SURROGATES));
