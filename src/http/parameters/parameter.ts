import { type Answer, errorAnswer } from '../answer.ts';
import type { Schema } from '../openapi/schema.ts';
import { clampedInt, isBlank, type Query } from './query.ts';

/**
 * A parameter of the query or a header. A route reads it by the same object that it is described by, so its range
 * stands in one place.
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
export interface LimitParameter extends Parameter {
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
    description: `How many at most. What is outside of ${min} to ${max} is moved to the nearer end, a fraction is cut, and what is no number counts as ${fallback}.`,
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
export interface ChoiceParameter<Value extends string> extends Parameter {
  readonly values: readonly Value[];
  /** What is answered to any other value. */
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
