import { listAnswer } from '../http/answer.ts';
import { ID_MESSAGE } from '../http/id.ts';
import { answered, bodyOf, dataBody } from '../http/openapi/body.ts';
import { envelope, page } from '../http/openapi/commonSchemas.ts';
import type { DescribedError, Operation, RequestBodyDescription } from '../http/openapi/operation.ts';
import { choice, nullable, ref, shapeOf, text, time } from '../http/openapi/schema.ts';
import { LIST_LIMIT, OFFSET } from '../http/parameters.ts';
import { ENDPOINT_ERRORS, ENDPOINT_LIMITS } from './endpoint.ts';
import { REPLAY_ERRORS } from './replayRequest.ts';
import { urlErrorMessage } from './urlSafety.ts';
import { DELIVERY_CALLBACK } from './webhookCallback.ts';
import {
  EXAMPLE_LEFT_OUT,
  EXAMPLE_PAUSED,
  EXAMPLE_SECRET,
  EXAMPLE_WEBHOOK,
  EXAMPLE_WEBHOOK_BODY,
} from './webhookExamples.ts';
import { leftOutView, webhookView } from './webhookViews.ts';

/** The errors of a route about one endpoint. */
export const ONE_WEBHOOK: readonly DescribedError[] = [['BAD_REQUEST', ID_MESSAGE], 'NOT_FOUND'];

const URL_ERRORS: readonly DescribedError[] = [
  ['WEBHOOK_URL_INVALID', urlErrorMessage('not_https')],
  ['WEBHOOK_URL_INVALID', urlErrorMessage('address_not_public')],
];

const WEBHOOK_BODY: Pick<RequestBodyDescription, 'fieldError' | 'errorExamples'> = {
  fieldError: ref('WebhookFieldError'),
  errorExamples: {
    'every invalid field at once': [ENDPOINT_ERRORS.eventsInvalid, ENDPOINT_ERRORS.maxRetriesOutOfRange],
    'not a JSON object': [ENDPOINT_ERRORS.bodyInvalid],
  },
};

const VIEW = webhookView(EXAMPLE_WEBHOOK);

export const CREATE_WEBHOOK: Operation = {
  id: 'createWebhook',
  tag: 'Webhooks',
  summary: 'Create an endpoint',
  description: `At most ${ENDPOINT_LIMITS.perOwner} per account. The signing secret is shown in this answer and never again. Nothing is sent to the url before the first event or test.`,
  body: {
    ...WEBHOOK_BODY,
    schema: ref('WebhookInput'),
    examples: {
      'some events': EXAMPLE_WEBHOOK_BODY,
      everything: { url: EXAMPLE_WEBHOOK_BODY.url, events: ['*'] },
    },
    errorExamples: {
      ...WEBHOOK_BODY.errorExamples,
      'one endpoint too many': [ENDPOINT_ERRORS.limitReached],
    },
  },
  answers: [
    answered(
      201,
      'The endpoint with its secret.',
      envelope(ref('WebhookWithSecret')),
      { created: dataBody({ ...VIEW, secret: EXAMPLE_SECRET }) },
      ['Location'],
    ),
  ],
  errors: URL_ERRORS,
  callbacks: { delivery: DELIVERY_CALLBACK },
};

export const LIST_WEBHOOKS: Operation = {
  id: 'listWebhooks',
  tag: 'Webhooks',
  summary: 'List endpoints',
  parameters: [LIST_LIMIT, OFFSET],
  answers: [
    answered(200, 'A page of endpoints, by id.', page(ref('Webhook')), {
      endpoints: bodyOf(listAnswer([VIEW], { limit: LIST_LIMIT.fallback, offset: 0 })),
    }),
  ],
};

export const GET_WEBHOOK: Operation = {
  id: 'getWebhook',
  tag: 'Webhooks',
  summary: 'Read one endpoint',
  answers: [
    answered(200, 'The endpoint, without its secret.', envelope(ref('Webhook')), {
      endpoint: dataBody(VIEW),
      'paused by the service': dataBody(webhookView(EXAMPLE_PAUSED)),
    }),
  ],
  errors: ONE_WEBHOOK,
};

export const UPDATE_WEBHOOK: Operation = {
  id: 'updateWebhook',
  tag: 'Webhooks',
  summary: 'Change an endpoint',
  description:
    'A url that is sent is checked again, and waiting deliveries go to the new one. `active: true` also resumes an endpoint that the service has paused.',
  body: {
    ...WEBHOOK_BODY,
    schema: ref('WebhookChange'),
    examples: { pause: { active: false }, 'other events': { events: ['*'] } },
  },
  answers: [
    answered(200, 'The endpoint as it is now.', envelope(ref('Webhook')), {
      paused: dataBody(webhookView({ ...EXAMPLE_WEBHOOK, active: false })),
    }),
  ],
  errors: [...ONE_WEBHOOK, ...URL_ERRORS],
};

export const DELETE_WEBHOOK: Operation = {
  id: 'deleteWebhook',
  tag: 'Webhooks',
  summary: 'Delete an endpoint',
  answers: [{ status: 204, description: 'It is gone, and its deliveries with it.' }],
  errors: ONE_WEBHOOK,
};

export const ROTATE_SECRET: Operation = {
  id: 'rotateWebhookSecret',
  tag: 'Webhooks',
  summary: 'Replace the signing secret',
  description:
    'The new secret signs at once. For 24 hours the old one signs beside it, in the header webhook-signature only.',
  answers: [
    answered(200, 'The endpoint with its new secret.', envelope(ref('WebhookWithSecret')), {
      rotated: dataBody({ ...VIEW, secret: EXAMPLE_SECRET }),
    }),
  ],
  errors: ONE_WEBHOOK,
};

export const COUNT_LEFT_OUT: Operation = {
  id: 'countLeftOut',
  tag: 'Webhooks',
  summary: 'Count what a paused endpoint lacks',
  description:
    'Events since the service paused the endpoint, and those whose deliveries are still being made after it was resumed. An event of the minute before the pause may be counted although it was delivered.',
  answers: [
    answered(200, 'How many events, by the hour.', envelope(ref('LeftOut')), {
      'two hours': dataBody(leftOutView(EXAMPLE_LEFT_OUT)),
    }),
  ],
  errors: ONE_WEBHOOK,
};

const RESUME_ERROR = shapeOf<{ field: string | null; code: string; message: string }>({
  field: { ...choice(['from']), nullable: true, enum: ['from', null] },
  code: choice(['INVALID', 'INVALID_BODY']),
  message: text(),
});

export const RESUME_WEBHOOK: Operation = {
  id: 'resumeWebhook',
  tag: 'Webhooks',
  summary: 'Resume a paused endpoint',
  description:
    'It gets new deliveries at once. Those that were left out are made again from the events, oldest first, while fewer than 5 000 wait. Nothing changes when the endpoint is not paused.',
  body: {
    schema: shapeOf<{ from: string }>(
      { from: nullable(time('Events recorded earlier stay left out. Now: all of them do.')) },
      { optional: ['from'] },
    ),
    examples: {
      'with everything that was left out': {},
      'from a time on': { from: '2026-03-02T09:00:00.000Z' },
    },
    fieldError: RESUME_ERROR,
    errorExamples: {
      'not a time': [REPLAY_ERRORS.fromInvalid],
      'not a JSON object': [REPLAY_ERRORS.bodyInvalid],
    },
  },
  answers: [
    answered(200, 'The endpoint as it is now.', envelope(ref('Webhook')), { resumed: dataBody(VIEW) }),
  ],
  errors: ONE_WEBHOOK,
};
