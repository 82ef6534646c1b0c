import { dataAnswer, type TextAnswer } from '../answer.ts';
import type { AnswerDescription, AnswerHeader, Examples } from './operation.ts';
import type { Schema } from './schema.ts';

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
