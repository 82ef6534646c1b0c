import type { Worlds } from '../../access/credentials.ts';
import type { Answer } from '../../http/answer.ts';
import { integer, list, type Schema, shapeOf, text } from '../../http/openapi/schema.ts';
import { isMissing, type JsonObject } from '../../lib/parseText.ts';
import type { Result } from '../../lib/result.ts';
import { DEVICE_STATUSES } from '../device.ts';
import {
  AGE_MAX_SECONDS,
  type DeviceFilter,
  filterOf,
  GROUP,
  GROUPS_MAX,
  MAX_AGE,
  STATUS,
  wordsOf,
} from './deviceFilter.ts';

/** The filters as fields of a body: the same names, where a list may also be an array, whose texts may have commas. */
export const FILTER_FIELDS: Readonly<Record<string, Schema>> = {
  status: {
    oneOf: [list({ type: 'string', enum: DEVICE_STATUSES }), text()],
    description: STATUS.description,
  },
  group: { oneOf: [list(text(), { maxItems: GROUPS_MAX }), text()], description: GROUP.description },
  max_age_seconds: integer(MAX_AGE.description, { minimum: 1, maximum: AGE_MAX_SECONDS }),
};

export const FILTER_SCHEMA: Schema = shapeOf<Record<string, unknown>>(FILTER_FIELDS, {
  optional: Object.keys(FILTER_FIELDS),
});

/** The filter in the fields of a body, null without one; or the 400 that says what is wrong. null counts as missing. */
export function readFilterFields(sent: JsonObject, worlds: Worlds): Result<DeviceFilter | null, Answer> {
  const { status, group, max_age_seconds: maxAge } = sent;
  const isAgeMissing = isMissing(maxAge);
  return filterOf(
    worlds,
    sentWords(status),
    sentWords(group),
    isAgeMissing ? null : typeof maxAge === 'number' ? maxAge : Number.NaN,
  );
}

/** What is neither a text nor an array of texts has no word that means anything. */
function sentWords(sent: unknown): readonly string[] | null {
  if (isMissing(sent)) return null;
  if (typeof sent === 'string') return wordsOf(sent);
  return Array.isArray(sent) && sent.every((word) => typeof word === 'string') ? sent : [''];
}
