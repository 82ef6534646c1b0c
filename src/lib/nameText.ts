import { fail, ok, type Result } from './result.ts';

export type NameError = 'blank' | 'not_plain' | 'too_long';

/** A name as people write it, trimmed; lengths count code points. */
export function parseNameText(text: string, maxCodePoints: number): Result<string, NameError> {
  const name = text.trim();
  if (name === '') return fail('blank');
  if (!isPlainText(name)) return fail('not_plain');
  return isLongerThan(name, maxCodePoints) ? fail('too_long') : ok(name);
}

/** True for text that Postgres can store and a terminal can show: no control characters, no half characters. */
export function isPlainText(text: string): boolean {
  return text.isWellFormed() && !/\p{Cc}/u.test(text);
}

/** Counts no further than it must: a body may hold a megabyte of name. */
function isLongerThan(text: string, maxCodePoints: number): boolean {
  return text.length > 2 * maxCodePoints || [...text].length > maxCodePoints;
}
