import type { Steps } from './workTurns.ts';

/** Values written in one step. */
const STEP_VALUES = 500;

/**
 * JSON text of a parsed value, with the members of every object in one order: values that parse equal give equal text.
 * Keys that are array indexes come first, as in every object, then the others by their code units. Hashes of these
 * texts are stored, so no byte of them may ever change.
 */
export function* canonicalJson(value: unknown): Steps<string> {
  if (!isContainer(value)) return JSON.stringify(value);
  let text = '';
  let written = 0;
  function* write(container: object): Steps<void> {
    const keys = Array.isArray(container) ? null : sortedKeys(container);
    const members = keys === null ? (container as readonly unknown[]) : keys;
    text += keys === null ? '[' : '{';
    for (let n = 0; n < members.length; n++) {
      if (++written % STEP_VALUES === 0) yield;
      if (n > 0) text += ',';
      const key = keys?.[n];
      if (key !== undefined) text += `${JSON.stringify(key)}:`;
      const member = key === undefined ? members[n] : (container as Readonly<Record<string, unknown>>)[key];
      if (isContainer(member)) yield* write(member);
      else text += JSON.stringify(member);
    }
    text += keys === null ? ']' : '}';
  }
  yield* write(value);
  return text;
}

function isContainer(value: unknown): value is object {
  return typeof value === 'object' && value !== null;
}

function sortedKeys(object: object): readonly string[] {
  const keys = Object.keys(object);
  if (keys.length < 2) return keys;
  const named = keys.findIndex((key) => !isArrayIndex(key));
  if (named === -1) return keys;
  return named === 0 ? keys.sort() : [...keys.slice(0, named), ...keys.slice(named).sort()];
}

/** The keys that every object lists first, in the order of their numbers (ECMA-262, OrdinaryOwnPropertyKeys). */
function isArrayIndex(key: string): boolean {
  const number = Number(key);
  return number >= 0 && number < MAX_ARRAY_LENGTH && Number.isInteger(number) && String(number) === key;
}

const MAX_ARRAY_LENGTH = 2 ** 32 - 1;
