import { ENDPOINT_ERRORS, ENDPOINT_LIMITS } from '../../delivery/endpoint.ts';
import { urlFaultMessage } from '../../delivery/urlSafety.ts';
import { listAnswer } from '../answer.ts';
import { ID_REFUSAL } from '../id.ts';
import { LIST_LIMIT, OFFSET } from '../parameters.ts';
import { webhookView } from '../webhookViews.ts';
import { envelope, page } from './commonSchemas.ts';
import { answered, bodyOf, dataBody } from './exampleBody.ts';
import { EXAMPLE_SECRET, EXAMPLE_WEBHOOK, EXAMPLE_WEBHOOK_BODY } from './exampleWebhooks.ts';
import type { Operation, Refusal, RequestBodyDescription } from './operation.ts';
import { ref } from './schema.ts';
import { DELIVERY_CALLBACK } from './webhookCallback.ts';

/** What a route about one endpoint refuses. */
export const ONE_WEBHOOK: readonly Refusal[] = [['BAD_REQUEST', ID_REFUSAL], 'NOT_FOUND'];

const URL_REFUSALS: readonly Refusal[] = [
  ['WEBHOOK_URL_INVALID', urlFaultMessage('not_https')],
  ['WEBHOOK_URL_INVALID', urlFaultMessage('address_not_public')],
];

const WEBHOOK_BODY: Pick<RequestBodyDescription, 'fault' | 'faultExamples'> = {
  fault: ref('WebhookFieldError'),
  faultExamples: {
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
    faultExamples: {
      ...WEBHOOK_BODY.faultExamples,
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
  refusals: URL_REFUSALS,
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
    }),
  ],
  refusals: ONE_WEBHOOK,
};

export const UPDATE_WEBHOOK: Operation = {
  id: 'updateWebhook',
  tag: 'Webhooks',
  summary: 'Change an endpoint',
  description: 'A url that is sent is judged again, and waiting deliveries go to the new one.',
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
  refusals: [...ONE_WEBHOOK, ...URL_REFUSALS],
};

export const DELETE_WEBHOOK: Operation = {
  id: 'deleteWebhook',
  tag: 'Webhooks',
  summary: 'Delete an endpoint',
  answers: [{ status: 204, description: 'It is gone, and its deliveries with it.' }],
  refusals: ONE_WEBHOOK,
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
  refusals: ONE_WEBHOOK,
};
