import { errorAnswer, validationAnswer } from '../answer.ts';
import { ERRORS, type ErrorCode } from '../errors.ts';
import { LENGTH_REFUSAL, QUERY_REFUSAL } from '../query.ts';
import type { ApiVersion, Route } from '../route.ts';
import { bodyOf } from './exampleBody.ts';
import type { Operation, Refusal, RequestBodyDescription } from './operation.ts';
import { choice, list, type Schema, shapeOf, text } from './schema.ts';

/** A Response Object with an error envelope. */
export interface ErrorResponse {
  readonly description: string;
  readonly headers?: object;
  readonly content: { readonly 'application/json': { readonly schema: Schema; readonly examples: object } };
}

const MB = 1024 * 1024;
const PARAMETER_REFUSALS: readonly Refusal[] = [
  ['BAD_REQUEST', QUERY_REFUSAL],
  ['BAD_REQUEST', LENGTH_REFUSAL],
];

/**
 * What a route can refuse, by status: what is its own, and what every route refuses alike, by reference to
 * components.responses.
 */
export function errorResponses(
  version: ApiVersion,
  route: Route,
  { body, refusals = [] }: Operation,
): Record<string, ErrorResponse> {
  const own = [...PARAMETER_REFUSALS, ...refusals];
  const byStatus = Map.groupBy(own, (refusal) => ERRORS[codeOf(refusal)][0]);
  const mark = version === 'v3' ? { headers: BETA_HEADER } : {};
  const responses: Record<string, ErrorResponse> = {};
  for (const [status, group] of byStatus) responses[status] = { ...errorResponse(group), ...mark };
  if (body !== undefined) {
    responses[ERRORS.VALIDATION_ERROR[0]] = { ...validationResponse(body), ...mark };
    const tooLarge = errorResponse(['PAYLOAD_TOO_LARGE']);
    const size = `More than ${(route.maxBodyBytes ?? 0) / MB} MB.`;
    responses[ERRORS.PAYLOAD_TOO_LARGE[0]] = { ...tooLarge, description: size, ...mark };
  }
  return { ...responses, ...COMMON };
}

export const BETA_HEADER = { 'X-API-Status': { $ref: '#/components/headers/X-API-Status' } };

/** Every route refuses these alike, by status; see SHARED_RESPONSES. */
const COMMON = Object.fromEntries(
  Object.entries({
    403: 'Forbidden',
    408: 'RequestTimeout',
    429: 'TooManyRequests',
    431: 'HeadersTooLarge',
    500: 'InternalError',
    503: 'ServiceUnavailable',
  }).map(([status, name]) => [status, { $ref: `#/components/responses/${name}` }]),
) as unknown as Record<string, ErrorResponse>;

/** One status with these refusals; each is an example, written as the service writes it. */
export function errorResponse(refusals: readonly Refusal[]): ErrorResponse {
  const codes = [...new Set(refusals.map(codeOf))];
  const examples: Record<string, object> = {};
  for (const refusal of refusals) {
    const code = codeOf(refusal);
    const body = bodyOf(errorAnswer(code, messageOf(refusal)));
    examples[code in examples ? `${code} ${Object.keys(examples).length + 1}` : code] = { value: body };
  }
  const meanings = codes.map((code) => `\`${code}\`: ${ERRORS[code][1]}.`);
  const description =
    meanings.length === 1 ? String(meanings[0]) : meanings.map((line) => `- ${line}`).join('\n');
  return { description, content: { 'application/json': { schema: errorSchema(codes), examples } } };
}

function errorSchema(codes: readonly ErrorCode[]): Schema {
  return shapeOf<{ error: object }>({
    error: shapeOf<{ code: ErrorCode; message: string }>({ code: choice(codes), message: text() }),
  });
}

/** 422: every invalid field of the body at once. */
function validationResponse({ fault, faultExamples }: RequestBodyDescription): ErrorResponse {
  const [, message] = ERRORS.VALIDATION_ERROR;
  const schema = shapeOf<{ error: object }>({
    error: shapeOf<{ code: ErrorCode; message: string; details: readonly object[] }>({
      code: choice(['VALIDATION_ERROR']),
      message: text(),
      details: list(fault, { minItems: 1 }),
    }),
  });
  const examples = Object.fromEntries(
    Object.entries(faultExamples).map(([name, details]) => [
      name,
      { value: bodyOf(validationAnswer(details)) },
    ]),
  );
  return {
    description: `\`VALIDATION_ERROR\`: ${message}.`,
    content: { 'application/json': { schema, examples } },
  };
}

function codeOf(refusal: Refusal): ErrorCode {
  return typeof refusal === 'string' ? refusal : refusal[0];
}

function messageOf(refusal: Refusal): string {
  return typeof refusal === 'string' ? ERRORS[refusal][1] : refusal[1];
}
