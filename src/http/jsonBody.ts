import { parseJson } from '../base/parseJson.ts';
import type { RequestBody } from './route.ts';

/** The JSON of a body; undefined, which no parser takes for an object, for what is no JSON or does not say so. */
export function jsonBody(body: RequestBody | null): unknown {
  const parsed = body?.isJson === true ? parseJson(Buffer.concat(body.pieces)) : null;
  return parsed?.ok === true ? parsed.value : undefined;
}
