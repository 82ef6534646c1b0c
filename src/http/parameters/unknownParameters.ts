import type { ApiVersion, Route } from '../route.ts';
import { choiceParameter } from './parameter.ts';

/** Names the parameters of a query that its route does not read: a misspelt one is otherwise ignored without a word. */
export const UNKNOWN_PARAMETERS_HEADER = 'X-Unknown-Parameters';

const NAMES_MAX = 10;
const NAME_MAX_CHARS = 64;

/** Every route of v3 takes it. */
export const STRICT = {
  ...choiceParameter(
    'strict',
    ['true', 'false'],
    'Whether a parameter that this operation does not know is an error. Otherwise the header `X-Unknown-Parameters` names it.',
  ),
  schema: { type: 'boolean', default: false },
} as const;

/** What a strict call with unknown parameters is answered with; `names` as in the header. */
export function unknownParametersMessage(names: string): string {
  return `unknown query parameters: ${names.replaceAll(',', ', ')}`;
}

/**
 * The names that a route reads from its query; null where unknown ones are ignored, which is everywhere but on v3 and on
 * the routes of v3 that v1 has for the application.
 */
export function knownParameters(version: ApiVersion, route: Route): ReadonlySet<string> | null {
  if ((version !== 'v3' && version !== 'v1') || !('describe' in route)) return null;
  const named = (route.describe.parameters ?? []).filter((parameter) => parameter.in === 'query');
  return new Set([STRICT.name, ...named.map(({ name }) => name)]);
}

/**
 * The value of the header: the first ten names, each percent-encoded and cut to 64 characters. It holds nothing but
 * letters, digits and punctuation, whatever the names hold.
 */
export function unknownParametersText(names: readonly string[]): string {
  return names.slice(0, NAMES_MAX).map(encoded).join(',');
}

function encoded(name: string): string {
  // An empty element would not be seen in a list.
  if (name === '') return '""';
  let text = '';
  for (const character of name.slice(0, NAME_MAX_CHARS).toWellFormed()) {
    const next = encodeURIComponent(character).replace(/[()]/g, (bracket) =>
      bracket === '(' ? '%28' : '%29',
    );
    if (text.length + next.length > NAME_MAX_CHARS) break;
    text += next;
  }
  return text;
}
