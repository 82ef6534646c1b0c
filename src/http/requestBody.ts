import type { IncomingMessage } from 'node:http';
import { BODY_INVALID } from '../lib/fieldError.ts';
import { type JsonError, MAX_JSON_VALUES, parseJson } from '../lib/parseJson.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import type { WorkTurns } from '../lib/workTurns.ts';
import { type Answer, errorAnswer, validationAnswer } from './answer.ts';
import type { BodyBudget, BodyOwner } from './bodyBudget.ts';
import { isEncoded } from './readBody.ts';
import type { RequestBody, Route } from './route.ts';

export interface BodyPorts {
  readonly bodies: BodyBudget;
  readonly turns: WorkTurns<BodyOwner>;
}

/** Larger ones are parsed one in a turn of the event loop, in turn by their owners: JSON.parse cannot be interrupted. */
const INLINE_BYTES = 16 * 1024;

/**
 * The answer that `answer` makes of the body (null when the route takes none), or an error when the route does not take
 * such a body. The body's bytes are released when the answer has settled. Rejects as BodyBudget.read does.
 */
export async function withBody(
  { bodies, turns }: BodyPorts,
  request: IncomingMessage,
  owner: BodyOwner,
  { maxBodyBytes, takesPieces, takesPlainOnly }: Route,
  answer: (body: RequestBody | null) => Answer | Promise<Answer>,
): Promise<Answer> {
  if (maxBodyBytes === undefined) return answer(null);
  if (takesPlainOnly === true && isEncoded(request)) return errorAnswer('BAD_REQUEST', PLAIN_ONLY_REFUSAL);
  const { pieces, release } = await bodies.read(request, owner, maxBodyBytes);
  try {
    const isJson = JSON_TYPE.test(request.headers['content-type'] ?? '');
    const json = isJson && takesPieces !== true ? await readJson(turns, owner, pieces) : null;
    return await answer({ pieces, isJson, json });
  } finally {
    release();
  }
}

const PLAIN_ONLY_REFUSAL = 'the body of this request must not be compressed';

/** application/json and every +json (RFC 6839 section 3.1), such as application/geo+json; with or without parameters. */
const JSON_TYPE = /^(?:application\/json|[^\s;/]+\/[^\s;/]+\+json)\s*(?:;|$)/i;

function readJson(
  turns: BodyPorts['turns'],
  owner: BodyOwner,
  pieces: readonly Buffer[],
): Result<unknown, JsonError> | Promise<Result<unknown, JsonError>> {
  const [only = Buffer.alloc(0)] = pieces;
  if (pieces.length <= 1 && only.length <= INLINE_BYTES) return parseJson(only);
  return turns.once(owner, () => parseJson(Buffer.concat(pieces)));
}

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
