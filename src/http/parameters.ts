import { parseIsoMs } from '../lib/time.ts';
import { type Answer, errorAnswer, listAnswer } from './answer.ts';
import { LATITUDE, LONGITUDE, type Schema } from './openapi/schema.ts';

/** Query parameters by name. Blank ones are kept: most count as missing, an IMEI does not. */
export type Query = Readonly<Record<string, string | undefined>>;

/** A query as it was read: its parameters, or what is wrong with them as such. */
type ReadQuery = {
  /** Names that are not among the known ones, each once; null when there are none, which is nearly always. */
  readonly unknown: readonly string[] | null;
} & ({ readonly query: Query } | { readonly problem: typeof REPEATED_MESSAGE | typeof LENGTH_MESSAGE });

export const REPEATED_MESSAGE = 'a query parameter is given twice';

/** Several times the longest that means anything, such as a cursor, or an external id with each character escaped. */
const PARAMETER_MAX_CHARS = 2_048;
export const LENGTH_MESSAGE = `a parameter has more than ${PARAMETER_MAX_CHARS} characters`;

/**
 * What queries are made from. It has no names of its own, so `in` finds what was sent only. An object with the prototype
 * null would do, but is a hash table from the beginning, which takes longer to make than a query to read.
 */
const NO_NAMES = Object.freeze(Object.create(null)) as Query;
const NO_QUERY: ReadQuery = { query: NO_NAMES, unknown: null };
const TOO_LONG: ReadQuery = { problem: LENGTH_MESSAGE, unknown: null };

/**
 * The query of a request target ("/path?a=b"). No path of this service is longer than a parameter may be, so that of the
 * path is counted with it. `known`: the names that the route reads; null where nobody asks for the others.
 */
export function readQuery(target: string, known: ReadonlySet<string> | null): ReadQuery {
  if (target.length > PARAMETER_MAX_CHARS && isTooLong(target)) return TOO_LONG;
  const mark = target.indexOf('?');
  if (mark === -1 || mark === target.length - 1) return NO_QUERY;
  return NEEDS_DECODING.test(target)
    ? readEncoded(target.slice(mark), known)
    : readPlain(target, mark + 1, known);
}

/** Whether the path or a piece of the query is: as sent, so that what is too long is not even decoded. */
function isTooLong(target: string): boolean {
  const mark = target.indexOf('?');
  if (mark === -1) return true;
  if (mark > PARAMETER_MAX_CHARS) return true;
  return target
    .slice(mark + 1)
    .split('&')
    .some((piece) => piece.length - piece.indexOf('=') - 1 > PARAMETER_MAX_CHARS);
}

/** An escape, or the blank's other spelling. */
const NEEDS_DECODING = /[%+]/;

/** `text` begins with the question mark, which URLSearchParams takes off: only the first is none of the name's. */
function readEncoded(text: string, known: ReadonlySet<string> | null): ReadQuery {
  const query: Record<string, string> = Object.create(NO_NAMES);
  let unknown: string[] | null = null;
  let isRepeated = false;
  for (const [name, value] of new URLSearchParams(text)) {
    if (name in query) {
      isRepeated = true;
      continue;
    }
    query[name] = value;
    if (known !== null && !known.has(name)) unknown = withName(unknown, name);
  }
  return isRepeated ? { problem: REPEATED_MESSAGE, unknown } : { query, unknown };
}

/** The same without a decoder, which takes longer than to answer: the query of nearly every polling call. */
function readPlain(target: string, start: number, known: ReadonlySet<string> | null): ReadQuery {
  const query: Record<string, string> = Object.create(NO_NAMES);
  let unknown: string[] | null = null;
  let isRepeated = false;
  for (let from = start; from <= target.length; ) {
    const ampersand = target.indexOf('&', from);
    const end = ampersand === -1 ? target.length : ampersand;
    const equals = target.indexOf('=', from);
    const nameEnd = equals === -1 || equals > end ? end : equals;
    if (end > from) {
      const name = target.slice(from, nameEnd);
      if (name in query) isRepeated = true;
      else {
        query[name] = nameEnd === end ? '' : target.slice(nameEnd + 1, end);
        if (known !== null && !known.has(name)) unknown = withName(unknown, name);
      }
    }
    from = end + 1;
  }
  return isRepeated ? { problem: REPEATED_MESSAGE, unknown } : { query, unknown };
}

function withName(names: string[] | null, name: string): string[] {
  if (names === null) return [name];
  names.push(name);
  return names;
}

/** Decimal notation only: no exponent, no hexadecimal, no blanks. */
const DECIMAL = /^[+-]?(?:\d+(?:\.\d*)?|\.\d+)$/;

/** A number in decimal notation, or null. So many digits that no double holds them are Infinity. */
export function parseDecimal(text: string | undefined): number | null {
  return text !== undefined && DECIMAL.test(text) ? Number(text) : null;
}

/** A whole number moved into [min, max]; `fallback` when missing or not a number; fractions are cut. */
export function clampedInt(text: string | undefined, min: number, max: number, fallback: number): number {
  const value = parseDecimal(text);
  if (value === null) return fallback;
  return Math.min(max, Math.max(min, Math.trunc(value)));
}

/** The offset of a list: 0 when missing, negative or not a number. */
export function offsetOf(query: Query): number {
  return clampedInt(query['offset'], 0, Number.MAX_SAFE_INTEGER, 0);
}

/** A time window, both ends included; null ends are open. 'invalid' when an end cannot be read. */
export function windowOf(query: Query): { fromMs: number | null; toMs: number | null } | 'invalid' {
  const fromMs = timeOf(query['from']);
  const toMs = timeOf(query['to']);
  return fromMs === 'invalid' || toMs === 'invalid' ? 'invalid' : { fromMs, toMs };
}

function timeOf(text: string | undefined): number | null | 'invalid' {
  if (text === undefined || isBlank(text)) return null;
  return parseIsoMs(text) ?? 'invalid';
}

export function isBlank(text: string): boolean {
  return text.trim() === '';
}

/** Whether a query has one of these parameters. */
export function hasOneOf(query: Query, parameters: readonly Parameter[]): boolean {
  for (const { name } of parameters) if (query[name] !== undefined) return true;
  return false;
}

/** Names the parameters of a query that its route does not read: a misspelt one is otherwise ignored without a word. */
export const UNKNOWN_PARAMETERS_HEADER = 'X-Unknown-Parameters';

const NAMES_MAX = 10;
const NAME_MAX_CHARS = 64;

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

/**
 * A parameter of the query or a header. A route reads it by the same object that the description shows, so its range is
 * written once.
 */
export interface Parameter {
  readonly name: string;
  readonly in: 'query' | 'header';
  readonly required: boolean;
  readonly description: string;
  readonly schema: Schema;
  readonly example?: unknown;
  /** False: a list is one value with commas. */
  readonly explode?: false;
}

/** A parameter of the query that may be missing. */
export function optionalParameter(name: string, description: string, schema: Schema) {
  return { name, in: 'query', required: false, description, schema } as const;
}

/** How many items of a list are wanted: moved into its range, never an error. */
interface LimitParameter extends Parameter {
  readonly min: number;
  readonly max: number;
  readonly fallback: number;
}

export function limitParameter(max: number, fallback: number): LimitParameter {
  const min = 1;
  const description = `How many items at most. A value outside ${min} to ${max} is moved to the nearer end, a fraction is cut, and a value that is not a number counts as ${fallback}.`;
  const schema: Schema = { type: 'integer', minimum: min, maximum: max, default: fallback };
  return { ...optionalParameter('limit', description, schema), min, max, fallback };
}

export function readLimit(query: Query, { min, max, fallback }: LimitParameter): number {
  return clampedInt(query['limit'], min, max, fallback);
}

/** A parameter of the query that is one of these words, or missing. */
interface ChoiceParameter<Value extends string> extends Parameter {
  readonly values: readonly Value[];
  /** The error for any other value. */
  readonly errorMessage: string;
}

export function choiceParameter<Value extends string>(
  name: string,
  values: readonly Value[],
  description: string,
  fallback?: Value,
): ChoiceParameter<Value> {
  const schema: Schema = { type: 'string', enum: values };
  return {
    ...optionalParameter(
      name,
      description,
      fallback === undefined ? schema : { ...schema, default: fallback },
    ),
    values,
    errorMessage: `${name} must be one of ${values.join(', ')}`,
  };
}

/** null when it is missing or blank. */
export function readChoice<Value extends string>(
  query: Query,
  { name, values }: ChoiceParameter<Value>,
): Value | null | 'invalid' {
  const sent = query[name];
  if (sent === undefined || isBlank(sent)) return null;
  return values.find((value) => value === sent) ?? 'invalid';
}

/** A parameter of the query that is some of these words, separated by commas. */
interface ListParameter<Value extends string> extends ChoiceParameter<Value> {
  /** What it counts as when it is missing or blank. */
  readonly fallback: readonly Value[];
}

export function listParameter<Value extends string>(
  name: string,
  values: readonly Value[],
  description: string,
  fallback?: readonly Value[],
): ListParameter<Value> {
  const schema: Schema = { type: 'array', items: { type: 'string', enum: values } };
  return {
    ...optionalParameter(
      name,
      description,
      fallback === undefined ? schema : { ...schema, default: fallback },
    ),
    explode: false,
    values,
    fallback: fallback ?? values,
    errorMessage: `${name} must be a comma-separated subset of ${values.join(', ')}`,
  };
}

export function readList<Value extends string>(
  query: Query,
  { name, values, fallback }: ListParameter<Value>,
): readonly Value[] | 'invalid' {
  const sent = query[name];
  if (sent === undefined || isBlank(sent)) return fallback;
  const found: Value[] = [];
  for (const word of sent.split(',')) {
    const value = values.find((known) => known === word.trim());
    if (value === undefined) return 'invalid';
    found.push(value);
  }
  return found;
}

export function parameterError({ errorMessage }: { readonly errorMessage: string }): Answer {
  return errorAnswer('BAD_REQUEST', errorMessage);
}

/** Postgres walks over every row that an offset skips. A longer list has to be narrowed. */
export const OFFSET_MAX = 100_000;
/** More rows than any table here has. */
const BEYOND_EVERY_LIST = 1e12;

/** The error for a larger offset into a longer list. */
export const OFFSET_MESSAGE = `offset is at most ${OFFSET_MAX} in a list as long as this; narrow it with from and to`;

export const LIST_LIMIT = limitParameter(200, 50);

export const OFFSET: Parameter = optionalParameter(
  'offset',
  'How many items to skip. A value that is negative or not a number counts as 0.',
  { type: 'integer', minimum: 0, default: 0 },
);

/** The offset of a list that may be longer than OFFSET_MAX. */
export const LONG_LIST_OFFSET: Parameter = {
  ...OFFSET,
  description: `${OFFSET.description} An offset above ${OFFSET_MAX} can only be past the end of the list; narrow a longer list with \`from\` and \`to\`.`,
};

export const LAT: Parameter = {
  ...optionalParameter('lat', 'Degrees north, in decimal notation.', LATITUDE),
  required: true,
  example: 41.9028,
};

export const LNG: Parameter = {
  ...optionalParameter('lng', 'Degrees east, in decimal notation.', LONGITUDE),
  required: true,
  example: 12.4964,
};

/** The error of the check of a point against an area for other coordinates. */
export const COORDINATES_MESSAGE = 'lat must be a number from -90 to 90 and lng a number from -180 to 180';

export const FROM: Parameter = optionalParameter(
  'from',
  'The earliest time wanted, itself included, in ISO 8601. A date alone is midnight UTC. Encode the + of an offset as %2B.',
  { type: 'string', format: 'date-time' },
);

export const TO: Parameter = optionalParameter(
  'to',
  'The latest time wanted, itself included, written like `from`.',
  { type: 'string', format: 'date-time' },
);

/** The error for a window whose ends cannot be read. */
export const WINDOW_MESSAGE = 'from and to must be ISO 8601 times';

/** Every route of v3 takes it. */
export const STRICT = {
  ...choiceParameter(
    'strict',
    ['true', 'false'],
    'Whether a parameter that this operation does not know is an error. Otherwise the header `X-Unknown-Parameters` names it.',
  ),
  schema: { type: 'boolean', default: false },
} as const;

/** The error for a strict call with unknown parameters; `names` as in the header. */
export function unknownParametersMessage(names: string): string {
  return `unknown query parameters: ${names.replaceAll(',', ', ')}`;
}

/** A page of a list in Postgres. */
export interface ListPage {
  readonly limit: number;
  readonly offset: number;
}

/**
 * A page of the list that `select` reads. A page past the end of the list is empty, whatever its offset. An offset above
 * OFFSET_MAX is an error if the list is longer, so no call costs more than a walk over that many rows.
 */
export async function listPageAnswer<Item>(
  page: ListPage,
  select: (page: ListPage) => Promise<readonly Item[]>,
  view: (item: Item) => unknown = (item) => item,
): Promise<Answer> {
  if (page.offset <= OFFSET_MAX) return listAnswer((await select(page)).map(view), page);
  if (page.offset < BEYOND_EVERY_LIST) {
    const beyond = await select({ limit: 1, offset: OFFSET_MAX });
    if (beyond.length > 0) return errorAnswer('BAD_REQUEST', OFFSET_MESSAGE);
  }
  return listAnswer([], page);
}

/** The id of a path; null when it is malformed. */
export function idOf(params: Readonly<Record<string, string>>): number | null {
  return parseId(params['id'] ?? '');
}

/** A positive integer up to 2^53 - 1, or null. */
export function parseId(text: string): number | null {
  if (!/^[0-9]{1,16}$/.test(text)) return null;
  const id = Number(text);
  return id >= 1 && Number.isSafeInteger(id) ? id : null;
}

export function malformedId(): Answer {
  return errorAnswer('BAD_REQUEST', ID_MESSAGE);
}

/** The error for a malformed id. */
export const ID_MESSAGE = 'the id must be a positive integer';
