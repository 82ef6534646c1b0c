import type { LatLng } from '../../geo/wgs84.ts';

/** A Schema Object of OpenAPI 3.0.3, as far as this description uses it. */
export interface Schema {
  readonly $ref?: string;
  readonly type?: 'object' | 'array' | 'string' | 'number' | 'integer' | 'boolean';
  readonly format?: string;
  readonly description?: string;
  readonly enum?: readonly unknown[];
  readonly default?: unknown;
  readonly nullable?: boolean;
  readonly pattern?: string;
  readonly minLength?: number;
  readonly maxLength?: number;
  readonly minimum?: number;
  readonly maximum?: number;
  /** In 3.0 a mark on `minimum`, not a number of its own. */
  readonly exclusiveMinimum?: boolean;
  readonly items?: Schema;
  readonly minItems?: number;
  readonly maxItems?: number;
  readonly properties?: Readonly<Record<string, Schema>>;
  readonly required?: readonly string[];
  /** True: members beyond `properties` belong to the caller. */
  readonly additionalProperties?: true;
  readonly oneOf?: readonly Schema[];
}

/**
 * An object with these fields, all of them always there but the optional ones. `View` is the type of what is sent:
 * a field that it gains or loses without its schema fails the type check.
 */
export function shapeOf<View>(
  properties: Readonly<Record<keyof View & string, Schema>>,
  { optional = [], description }: { optional?: readonly (keyof View)[]; description?: string } = {},
): Schema {
  const required = Object.keys(properties).filter((name) => !optional.includes(name as keyof View));
  return {
    type: 'object',
    ...(description === undefined ? {} : { description }),
    ...(required.length === 0 ? {} : { required }),
    properties,
  };
}

/** The schema under this name in components.schemas; `apiDocument` throws for a name that is not there. */
export function ref(name: string): Schema {
  return { $ref: `#/components/schemas/${name}` };
}

/** The same, or null. In 3.0 an enum must list null too. */
export function nullable(schema: Schema): Schema {
  const values = schema.enum === undefined ? {} : { enum: [...schema.enum, null] };
  return { ...schema, ...values, nullable: true };
}

export function list(
  items: Schema,
  bounds: Pick<Schema, 'minItems' | 'maxItems' | 'description'> = {},
): Schema {
  return { type: 'array', items, ...bounds };
}

/**
 * A field of a body with its default, in words: a generator that reads it in `default` takes the field for one
 * that is always there (openapi-typescript does).
 */
export function defaulting(schema: Schema, value: string | number | boolean): Schema {
  const { description: before } = schema;
  return { ...schema, description: `${before === undefined ? '' : `${before} `}Default: ${value}.` };
}

/** One of these words. */
export function choice(values: readonly string[], description?: string): Schema {
  return { type: 'string', enum: values, ...(description === undefined ? {} : { description }) };
}

const ofType =
  (type: NonNullable<Schema['type']>) =>
  (description?: string, rest: Omit<Schema, 'type' | 'description'> = {}): Schema => ({
    type,
    ...(description === undefined ? {} : { description }),
    ...rest,
  });

export const text = ofType('string');
export const number = ofType('number');
export const integer = ofType('integer');

/** ISO 8601 in UTC with milliseconds, as every time is sent. */
export const time = (description?: string): Schema => text(description, { format: 'date-time' });

export const LATITUDE: Schema = { type: 'number', minimum: -90, maximum: 90 };
export const LONGITUDE: Schema = { type: 'number', minimum: -180, maximum: 180 };

/** A position in the body of an area or an event. */
export const LAT_LNG: Schema = shapeOf<LatLng>({ lat: LATITUDE, lng: LONGITUDE });

/** The id of an area, event, webhook or command. */
export const ID: Schema = integer(undefined, {
  format: 'int64',
  minimum: 1,
  maximum: Number.MAX_SAFE_INTEGER,
});

export const PAGINATION: Schema = shapeOf<{ limit: number; offset: number; count: number }>({
  limit: integer('As it was used.', { minimum: 1 }),
  offset: integer('As it was used.', { minimum: 0 }),
  count: integer('How many items are on this page.', { minimum: 0 }),
});

const NO_META: Schema = { type: 'object', description: 'Empty here.' };

/** `{ data, meta }`. */
export function envelope(data: Schema, meta: Schema = NO_META): Schema {
  return shapeOf<{ data: unknown; meta: unknown }>({ data, meta });
}

/** `{ data, meta: { pagination } }` of a list. */
export function page(items: Schema, more: Readonly<Record<string, Schema>> = {}): Schema {
  return envelope({ type: 'array', items }, pageMeta(more));
}

export function pageMeta(more: Readonly<Record<string, Schema>> = {}): Schema {
  return shapeOf<Record<string, unknown>>({ pagination: PAGINATION, ...more });
}

export const SPEED_KMH = number('Kilometres per hour.', { minimum: 0 });
