import { listAnswer } from '../http/answer.ts';
import { OFFSET_MESSAGE } from '../http/listPageAnswer.ts';
import { answered, bodyOf, dataBody } from '../http/openapi/body.ts';
import { envelope, page } from '../http/openapi/commonSchemas.ts';
import type { DescribedError, Operation } from '../http/openapi/operation.ts';
import { ref } from '../http/openapi/schema.ts';
import {
  DELIVERY_ID_MESSAGE,
  DELIVERY_STATUS,
  FROM,
  LIST_LIMIT,
  LONG_LIST_OFFSET,
  REPLAY_MESSAGE,
  TO,
  WINDOW_MESSAGE,
} from '../http/parameters.ts';
import { summarize } from './summary.ts';
import { EXAMPLE_DELIVERY, EXAMPLE_EXHAUSTED, EXAMPLE_PENDING } from './webhookExamples.ts';
import { ONE_WEBHOOK } from './webhookOperations.ts';
import { deliveryView, summaryView } from './webhookViews.ts';

/** The window of a list of deliveries. */
const CREATED = [FROM, TO].map((end) => ({ ...end, description: `${end.description} Of \`created_at\`.` }));

const LONG_LIST: readonly DescribedError[] = [
  ['BAD_REQUEST', WINDOW_MESSAGE],
  ['BAD_REQUEST', OFFSET_MESSAGE],
];

const PAGE = { limit: LIST_LIMIT.fallback, offset: 0 };

export const LIST_DELIVERIES: Operation = {
  id: 'listDeliveries',
  tag: 'Deliveries',
  summary: 'List the deliveries of an endpoint',
  description: 'Newest first.',
  parameters: [DELIVERY_STATUS, ...CREATED, LIST_LIMIT, LONG_LIST_OFFSET],
  answers: [
    answered(200, 'A page of deliveries.', page(ref('Delivery')), {
      deliveries: bodyOf(listAnswer([EXAMPLE_DELIVERY, EXAMPLE_EXHAUSTED].map(deliveryView), PAGE)),
    }),
  ],
  errors: [...ONE_WEBHOOK, ['BAD_REQUEST', DELIVERY_STATUS.errorMessage], ...LONG_LIST],
};

export const LIST_DEAD_LETTERS: Operation = {
  id: 'listDeadLetters',
  tag: 'Deliveries',
  summary: 'List exhausted deliveries',
  description: 'Of all endpoints of the account, newest first. Each can be replayed.',
  parameters: [...CREATED, LIST_LIMIT, LONG_LIST_OFFSET],
  answers: [
    answered(200, 'A page of exhausted deliveries.', page(ref('Delivery')), {
      'dead letter': bodyOf(listAnswer([deliveryView(EXAMPLE_EXHAUSTED)], PAGE)),
    }),
  ],
  errors: LONG_LIST,
};

export const SUMMARIZE_DELIVERIES: Operation = {
  id: 'summarizeDeliveries',
  tag: 'Deliveries',
  summary: 'Count the deliveries of the last 24 hours',
  answers: [
    answered(200, 'The counts.', envelope(ref('DeliverySummary')), {
      summary: dataBody(
        summaryView(
          summarize({
            byStatus: { delivered: 940, failed: 3, exhausted: 1, pending: 2 },
            attempts: 957,
            durations: [
              { durationMs: 80, count: 700 },
              { durationMs: 210, count: 230 },
              { durationMs: 1900, count: 10 },
            ],
          }),
        ),
      ),
      none: dataBody(summaryView(summarize({ byStatus: {}, attempts: 0, durations: [] }))),
    }),
  ],
};

export const TEST_WEBHOOK: Operation = {
  id: 'testWebhook',
  tag: 'Deliveries',
  summary: 'Send a test event',
  description: 'An ordinary delivery of type ping to this endpoint alone, also while it is inactive.',
  answers: [
    answered(202, 'The delivery, waiting for its first attempt.', envelope(ref('Delivery')), {
      ping: dataBody(deliveryView(EXAMPLE_PENDING)),
    }),
  ],
  errors: ONE_WEBHOOK,
};

export const REPLAY_DELIVERY: Operation = {
  id: 'replayDelivery',
  tag: 'Deliveries',
  summary: 'Send a failed or exhausted delivery again',
  description: 'At once, with a fresh budget of attempts; the number of the attempts goes on.',
  answers: [
    answered(202, 'The delivery, waiting for its attempt.', envelope(ref('Delivery')), {
      requeued: dataBody(
        deliveryView({
          ...EXAMPLE_EXHAUSTED,
          status: 'requeued',
          nextAttemptAtMs: EXAMPLE_DELIVERY.createdAtMs,
        }),
      ),
    }),
  ],
  errors: [['BAD_REQUEST', DELIVERY_ID_MESSAGE], ['BAD_REQUEST', REPLAY_MESSAGE], 'NOT_FOUND'],
};
