import type { FieldFault } from '../answer.ts';
import type { ErrorCode } from '../errors.ts';
import type { Parameter } from '../parameter.ts';
import type { Schema } from './schema.ts';

/** What the description says about a route beyond what the route itself tells (path, method, permissions, size). */
export interface Operation {
  /** Unique: generated clients name their function after it. */
  readonly id: string;
  readonly tag: Tag;
  readonly summary: string;
  readonly description?: string;
  /** Of the query and headers; those of the path follow from it. */
  readonly parameters?: readonly Parameter[];
  readonly body?: RequestBodyDescription;
  readonly answers: readonly AnswerDescription[];
  /** Errors that this route adds to those that every route can answer with. */
  readonly refusals?: readonly Refusal[];
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
  Description: 'This description.',
} as const;

export type Tag = keyof typeof TAGS;

export interface RequestBodyDescription {
  readonly description?: string;
  readonly schema: Schema;
  readonly examples: Examples;
  /** Beside application/json. */
  readonly contentTypes?: readonly string[];
  /** A body that is not valid: the schema of an element of details[], and details that are really answered. */
  readonly fault: Schema;
  readonly faultExamples: Readonly<Record<string, readonly FieldFault[]>>;
}

/** An answer that is no error envelope. */
export interface AnswerDescription {
  readonly status: 200 | 201 | 202 | 204 | 304 | 422;
  readonly description: string;
  /** Of the whole body; without it there is none. */
  readonly schema?: Schema;
  readonly contentType?: string;
  readonly headers?: readonly AnswerHeader[];
  /** Whole bodies. */
  readonly examples?: Examples;
}

export type AnswerHeader = 'Location' | 'Idempotent-Replayed' | 'ETag';

export type Examples = Readonly<Record<string, unknown>>;

/** A code with its usual message, or with the one that is used here. */
export type Refusal = ErrorCode | readonly [code: ErrorCode, message: string];
