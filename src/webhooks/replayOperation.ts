import { answered, dataBody } from '../http/openapi/body.ts';
import { envelope } from '../http/openapi/commonSchemas.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { choice, integer, list, shapeOf, text, time } from '../http/openapi/schema.ts';
import { REPLAY_ERRORS, REPLAYABLE } from './replayRequest.ts';
import { ONE_WEBHOOK } from './webhookOperations.ts';

const FIELD_ERROR = shapeOf<{ field: string | null; code: string; message: string }>({
  field: { ...choice(['status', 'from', 'to']), nullable: true, enum: ['status', 'from', 'to', null] },
  code: choice(['INVALID', 'INVALID_BODY']),
  message: text(),
});

export const REPLAY_DELIVERIES: Operation = {
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
