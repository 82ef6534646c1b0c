import { BODY_INVALID } from '../../lib/fieldError.ts';
import { type JsonError, MAX_JSON_VALUES } from '../../lib/parseJson.ts';
import { fail, ok, type Result } from '../../lib/result.ts';
import { type Answer, errorAnswer, validationAnswer } from '../answer.ts';
import type { RequestBody } from '../route.ts';

/** The JSON of a body, or the answer to what is none. */
export function jsonBody(body: RequestBody | null): Result<unknown, Answer> {
  if (body?.json?.ok === true) return ok(body.json.value);
  return fail(body?.json?.ok === false ? jsonErrorAnswer(body.json.error) : notJsonAnswer(body));
}

/** The answer to a body that does not say that it is JSON, or to none. */
export function notJsonAnswer(body: RequestBody | null): Answer {
  const isThere = body !== null && body.pieces.length > 0;
  return invalidBody(
    isThere ? 'the body must say that it is JSON, by Content-Type: application/json' : NO_OBJECT,
  );
}

function jsonErrorAnswer(error: JsonError): Answer {
  switch (error) {
    case 'too_many_values':
      return errorAnswer('PAYLOAD_TOO_LARGE', TOO_MANY_VALUES);
    case 'too_deep':
      return invalidBody('the body is nested deeper than 64 levels');
    case 'not_json':
      return invalidBody(NO_OBJECT);
  }
}

const TOO_MANY_VALUES = `the body holds more than ${MAX_JSON_VALUES} values and names`;
const NO_OBJECT = BODY_INVALID.message;

function invalidBody(message: string): Answer {
  return validationAnswer([{ ...BODY_INVALID, message }]);
}
