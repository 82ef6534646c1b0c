import type { FieldError } from '../../lib/result.ts';
import { dataAnswer, type ErrorCode, type TextAnswer } from '../answer.ts';
import type { Parameter } from '../parameters.ts';
import type { Schema } from './schema.ts';

/** The description of a route, beside its path, method, permissions and size, which the route itself has. */
export interface Operation {
  /** Unique: generated clients name their function after it. */
  readonly id: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  /** Parameters of the query and headers; those of the path follow from it. */
  readonly parameters?: readonly Parameter[];
  readonly body?: RequestBodyDescription;
  readonly answers: readonly AnswerDescription[];
  /** The errors of this route, in addition to those that every route has. */
  readonly errors?: readonly DescribedError[];
  /** Requests that the service sends because of this one, by name. */
  readonly callbacks?: Readonly<Record<string, object>>;
}

/** The groups of the page, in its order. */
export const TAGS = {
  Devices: 'Vehicles, their positions, history and command queue.',
  Events: 'What has happened in the fleet, newest first.',
  Areas: 'Geofences: circles, places, polygons and tracks.',
  Webhooks: 'Endpoints that are sent the events of the fleet.',
  Deliveries: 'What was sent to an endpoint, and what became of it.',
  Shares: 'Links that show where some vehicles are, for a time.',
  Description: 'This description.',
} as const;

export type Tag = keyof typeof TAGS;

export interface RequestBodyDescription {
  readonly description?: string;
  readonly schema: Schema;
  readonly examples: Examples;
  /** Beside application/json. */
  readonly contentTypes?: readonly string[];
  /** The schema of an element of `details` when the body is invalid. */
  readonly fieldError: Schema;
  /** `details` as the service answers them. */
  readonly errorExamples: Readonly<Record<string, readonly FieldError[]>>;
  /** What 422 carries as `data` with the error, on routes that report on the items of a body. */
  readonly report?: ReportDescription;
}

export interface ReportDescription {
  /** Of the whole response. */
  readonly description: string;
  /** Of `data`. */
  readonly schema: Schema;
  /** Whole bodies. */
  readonly examples: Readonly<Record<string, { readonly value: unknown }>>;
}

/** An answer without an error. */
export interface AnswerDescription {
  readonly status: 200 | 201 | 202 | 204 | 304;
  readonly description: string;
  /** Of the whole body; without it there is none. */
  readonly schema?: Schema;
  readonly contentType?: string;
  /** The types of files that the body may be instead. */
  readonly fileTypes?: readonly string[];
  readonly headers?: readonly AnswerHeader[];
  /** Whole bodies. */
  readonly examples?: Examples;
}

export type AnswerHeader = 'Location' | 'Idempotent-Replayed' | 'ETag';

export type Examples = Readonly<Record<string, unknown>>;

/** A code with its usual message, or with the one that is used here. */
export type DescribedError = ErrorCode | readonly [code: ErrorCode, message: string];

/** The body of an answer that the code made: an example that is real. */
export function bodyOf({ body }: TextAnswer): unknown {
  return JSON.parse(body);
}

/** `{ data, meta }`, as every answer of that form is written. */
export function dataBody(data: unknown, meta: Readonly<Record<string, unknown>> = {}): unknown {
  return bodyOf(dataAnswer(data, meta));
}

/** An answer with a JSON body. */
export function answered(
  status: AnswerDescription['status'],
  description: string,
  schema: Schema,
  examples: Examples,
  headers: readonly AnswerHeader[] = [],
): AnswerDescription {
  return { status, description, schema, examples, headers };
}
