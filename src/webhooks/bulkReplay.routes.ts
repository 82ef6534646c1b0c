import { scopeMask } from '../access/scopes.ts';
import { type Answer, dataAnswer, errorAnswer, validationAnswer } from '../http/answer.ts';
import { answered, dataBody } from '../http/openapi/body.ts';
import { envelope } from '../http/openapi/commonSchemas.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { choice, integer, list, shapeOf, text, time } from '../http/openapi/schema.ts';
import { idOf, malformedId } from '../http/parameters/id.ts';
import type { ChangePorts } from '../http/ports.ts';
import { jsonBody } from '../http/requestBody.ts';
import { type Call, JSON_BODY_BYTES, type Route } from '../http/route.ts';
import { replayDeliveries } from './replayDeliveries.ts';
import { parseReplayRequest, REPLAY_ERRORS, REPLAYABLE } from './replayRequest.ts';
import type { WebhookWritePorts } from './saveWebhook.ts';
import { ONE_WEBHOOK } from './webhookOperations.ts';

/** A million deliveries take less; a connection without an answer is cut after 150 s. */
const DEADLINE_MS = 140_000;

type BulkReplayPorts = ChangePorts & Pick<WebhookWritePorts, 'wake'>;

/** Sends the failed deliveries of an endpoint again, all at once. */
export function bulkReplayRoute(ports: BulkReplayPorts): Route {
  return {
    method: 'POST',
    path: '/:id/replay',
    scopes: scopeMask('manage_webhooks'),
    versions: ['webhooks'],
    maxBodyBytes: JSON_BODY_BYTES,
    deadlineMs: DEADLINE_MS,
    describe: REPLAY_DELIVERIES,
    handle: (call) => replay(ports, call),
  };
}

async function replay({ writes, wake }: BulkReplayPorts, { caller, params, body }: Call): Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  const json = jsonBody(body);
  if (!json.ok) return json.error;
  const request = parseReplayRequest(json.value);
  if (!request.ok) return validationAnswer(request.error);
  const write = writes(caller.accountId);
  const requeued = await replayDeliveries({ write, wake }, caller, id, request.value);
  return requeued === undefined ? errorAnswer('NOT_FOUND') : { ...dataAnswer({ requeued }), status: 202 };
}

const FIELD_ERROR = shapeOf<{ field: string | null; code: string; message: string }>({
  field: { ...choice(['status', 'from', 'to']), nullable: true, enum: ['status', 'from', 'to', null] },
  code: choice(['INVALID', 'INVALID_BODY']),
  message: text(),
});

const REPLAY_DELIVERIES: Operation = {
  id: 'replayDeliveries',
  tag: 'Deliveries',
  summary: 'Send all failed or exhausted deliveries of an endpoint again',
  description:
    'All that the replay of a single delivery would take, oldest first, each with a fresh budget of attempts. What has an attempt in flight is left out.',
  body: {
    schema: shapeOf<{ status: readonly string[]; from: string; to: string }>(
      {
        status: list(choice(REPLAYABLE), { minItems: 1 }),
        from: time('The earliest `created_at` wanted, itself included.'),
        to: time('The latest `created_at` wanted, itself included.'),
      },
      { optional: ['from', 'to'] },
    ),
    examples: {
      'after an outage': {
        status: ['failed', 'exhausted'],
        from: '2026-03-02T06:00:00.000Z',
        to: '2026-03-02T09:00:00.000Z',
      },
      'all dead letters': { status: ['exhausted'] },
    },
    fieldError: FIELD_ERROR,
    errorExamples: {
      'every invalid field at once': [REPLAY_ERRORS.statusInvalid, REPLAY_ERRORS.fromInvalid],
      'not a JSON object': [REPLAY_ERRORS.bodyInvalid],
    },
  },
  answers: [
    answered(
      202,
      'How many deliveries wait for an attempt now.',
      envelope(shapeOf<{ requeued: number }>({ requeued: integer(undefined, { minimum: 0 }) })),
      { requeued: dataBody({ requeued: 412 }) },
    ),
  ],
  errors: ONE_WEBHOOK,
};
