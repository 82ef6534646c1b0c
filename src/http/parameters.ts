import { type Answer, errorAnswer, listAnswer } from './answer.ts';
import { LATITUDE, LONGITUDE, type Schema } from './openapi/schema.ts';
import { clampedInt, isBlank, type Query } from './query.ts';

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

/** How many items of a list are wanted: moved into its range, never an error. */
interface LimitParameter extends Parameter {
  readonly min: number;
  readonly max: number;
  readonly fallback: number;
}

export function limitParameter(max: number, fallback: number): LimitParameter {
  const min = 1;
  return {
    name: 'limit',
    in: 'query',
    required: false,
    description: `How many items at most. A value outside ${min} to ${max} is moved to the nearer end, a fraction is cut, and a value that is not a number counts as ${fallback}.`,
    schema: { type: 'integer', minimum: min, maximum: max, default: fallback },
    min,
    max,
    fallback,
  };
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
    name,
    in: 'query',
    required: false,
    description,
    schema: fallback === undefined ? schema : { ...schema, default: fallback },
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

export const OFFSET: Parameter = {
  name: 'offset',
  in: 'query',
  required: false,
  description: 'How many items to skip. A value that is negative or not a number counts as 0.',
  schema: { type: 'integer', minimum: 0, default: 0 },
};

/** The offset of a list that may be longer than OFFSET_MAX. */
export const LONG_LIST_OFFSET: Parameter = {
  ...OFFSET,
  description: `${OFFSET.description} An offset above ${OFFSET_MAX} can only be past the end of the list; narrow a longer list with \`from\` and \`to\`.`,
};

export const LAT: Parameter = {
  name: 'lat',
  in: 'query',
  required: true,
  description: 'Degrees north, in decimal notation.',
  schema: LATITUDE,
  example: 41.9028,
};

export const LNG: Parameter = {
  name: 'lng',
  in: 'query',
  required: true,
  description: 'Degrees east, in decimal notation.',
  schema: LONGITUDE,
  example: 12.4964,
};

/** The error of the check of a point against an area for other coordinates. */
export const COORDINATES_MESSAGE = 'lat must be a number from -90 to 90 and lng a number from -180 to 180';

export const FROM: Parameter = {
  name: 'from',
  in: 'query',
  required: false,
  description:
    'The earliest time wanted, itself included, in ISO 8601. A date alone is midnight UTC. Encode the + of an offset as %2B.',
  schema: { type: 'string', format: 'date-time' },
};

export const TO: Parameter = {
  name: 'to',
  in: 'query',
  required: false,
  description: 'The latest time wanted, itself included, written like `from`.',
  schema: { type: 'string', format: 'date-time' },
};

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
  view: (item: Item) => unknown,
): Promise<Answer> {
  if (page.offset <= OFFSET_MAX) return listAnswer((await select(page)).map(view), page);
  if (page.offset < BEYOND_EVERY_LIST) {
    const beyond = await select({ limit: 1, offset: OFFSET_MAX });
    if (beyond.length > 0) return errorAnswer('BAD_REQUEST', OFFSET_MESSAGE);
  }
  return listAnswer([], page);
}

/** The id of a path: a positive integer up to 2^53 - 1; null when it is malformed. */
export function idOf(params: Readonly<Record<string, string>>): number | null {
  return parseId(params['id'] ?? '');
}

/** Parses an id from any text. */
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
