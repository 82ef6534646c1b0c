import { BODY_INVALID, type FieldError } from '../lib/fieldError.ts';
import { parseIsoMs } from '../lib/isoTime.ts';
import { isJsonObject, isMissing } from '../lib/parseJson.ts';
import { fail, ok, type Result } from '../lib/result.ts';

/** The states from which deliveries are replayed. */
export const REPLAYABLE = ['failed', 'exhausted'] as const;

export type ReplayableStatus = (typeof REPLAYABLE)[number];

/** Which deliveries of an endpoint are to be sent again; the window is of created_at, both ends included. */
export interface ReplayRequest {
  readonly statuses: readonly ReplayableStatus[];
  readonly fromMs: number | null;
  readonly toMs: number | null;
}

export const REPLAY_ERRORS = {
  bodyInvalid: BODY_INVALID,
  statusInvalid: {
    field: 'status',
    code: 'INVALID',
    message: `status must be a list of ${REPLAYABLE.join(', ')}, at least one`,
  },
  fromInvalid: { field: 'from', code: 'INVALID', message: 'from must be an ISO 8601 time' },
  toInvalid: { field: 'to', code: 'INVALID', message: 'to must be an ISO 8601 time' },
} as const satisfies Readonly<Record<string, FieldError>>;

/** The body of a bulk replay, or every invalid field of it. */
export function parseReplayRequest(body: unknown): Result<ReplayRequest, FieldError[]> {
  if (!isJsonObject(body)) return fail([REPLAY_ERRORS.bodyInvalid]);
  const { status, from, to } = body;
  const errors: FieldError[] = [];
  const statuses = Array.isArray(status) ? REPLAYABLE.filter((each) => status.includes(each)) : [];
  const isKnown = Array.isArray(status) && status.every((each) => REPLAYABLE.includes(each));
  if (statuses.length === 0 || !isKnown) errors.push(REPLAY_ERRORS.statusInvalid);
  const fromMs = timeOf(from);
  const toMs = timeOf(to);
  if (fromMs === 'invalid') errors.push(REPLAY_ERRORS.fromInvalid);
  if (toMs === 'invalid') errors.push(REPLAY_ERRORS.toInvalid);
  if (errors.length > 0 || fromMs === 'invalid' || toMs === 'invalid') return fail(errors);
  return ok({ statuses, fromMs, toMs });
}

/** The body that ends a pause: from when on deliveries that were left out are made; null: from the first. */
export function parseResumeRequest(body: unknown): Result<{ fromMs: number | null }, FieldError[]> {
  if (!isJsonObject(body)) return fail([REPLAY_ERRORS.bodyInvalid]);
  const fromMs = timeOf(body['from']);
  return fromMs === 'invalid' ? fail([REPLAY_ERRORS.fromInvalid]) : ok({ fromMs });
}

function timeOf(value: unknown): number | null | 'invalid' {
  if (isMissing(value)) return null;
  return (typeof value === 'string' ? parseIsoMs(value) : null) ?? 'invalid';
}
