import { type Answer, errorAnswer } from '../answer.ts';

/** The id of a path: a positive integer up to 2^53 - 1; null when it is malformed. */
export function idOf(params: Readonly<Record<string, string>>): number | null {
  return parseId(params['id'] ?? '');
}

/** The same of any text. */
export function parseId(text: string): number | null {
  if (!/^[0-9]{1,16}$/.test(text)) return null;
  const id = Number(text);
  return id >= 1 && Number.isSafeInteger(id) ? id : null;
}

export function malformedId(): Answer {
  return errorAnswer('BAD_REQUEST', ID_MESSAGE);
}

/** What is answered to an id in another form. */
export const ID_MESSAGE = 'the id must be a positive integer';
