import { EXAMPLE_VAN } from '../devices/deviceViews.ts';
import { EXAMPLE_EVENTS } from '../events/eventView.ts';
import { listAnswer } from '../http/answer.ts';
import { answered, bodyOf, dataBody } from '../http/openapi/body.ts';
import { envelope, page } from '../http/openapi/commonSchemas.ts';
import type { DescribedError, Operation, RequestBodyDescription } from '../http/openapi/operation.ts';
import { choice, ref, shapeOf, text } from '../http/openapi/schema.ts';
import { ID_MESSAGE } from '../http/parameters/id.ts';
import { LIST_LIMIT, OFFSET } from '../http/parameters/parameters.ts';
import { deliveryHeaders } from './delivery/signature.ts';
import { urlErrorMessage } from './delivery/urlSafety.ts';
import { ENDPOINT_ERRORS, ENDPOINT_LIMITS } from './endpoint.ts';
import { fleetEventBody, pauseBody, pingBody, webhookTypeOf } from './message.ts';
import {
  EXAMPLE_DELIVERY,
  EXAMPLE_PAUSED,
  EXAMPLE_SECRET,
  EXAMPLE_WEBHOOK,
  EXAMPLE_WEBHOOK_BODY,
} from './webhookExamples.ts';
import { webhookView } from './webhookViews.ts';

const { imei, name, plate } = EXAMPLE_VAN.fields;

/** A body of every type, written by the code that writes them. */
const BODIES: readonly string[] = [
  ...EXAMPLE_EVENTS.map((event) =>
    fleetEventBody({
      id: EXAMPLE_DELIVERY.eventId,
      type: webhookTypeOf(event.type, event.direction),
      createdAtMs: EXAMPLE_DELIVERY.createdAtMs,
      fleetEventId: event.id,
      occurredAtMs: event.occurredAtMs,
      device: { imei, name, plate },
      data: event.data,
    }),
  ),
  pauseBody(
    EXAMPLE_DELIVERY.eventId,
    { webhookId: EXAMPLE_WEBHOOK.id, reason: 'failing' },
    EXAMPLE_DELIVERY.createdAtMs,
  ),
  pingBody(EXAMPLE_DELIVERY.eventId, EXAMPLE_WEBHOOK.id, EXAMPLE_DELIVERY.createdAtMs),
];

/** The headers of the delivery of the first body. */
const HEADERS = deliveryHeaders({
  endpointId: EXAMPLE_WEBHOOK.id,
  eventId: EXAMPLE_DELIVERY.eventId,
  deliveryId: EXAMPLE_DELIVERY.id,
  attempt: 1,
  body: BODIES[0] as string,
  secret: EXAMPLE_SECRET,
  previousSecret: null,
  nowMs: EXAMPLE_DELIVERY.createdAtMs,
});

const HEADER_NOTES: Readonly<Record<string, string>> = {
  'X-Service-Signature':
    'sha256= and the lower-case hexadecimal HMAC-SHA256 of the raw body, keyed with the whole signing secret as text.',
  'X-Service-Signature-Version': 'The scheme of X-Service-Signature.',
  'X-Service-Timestamp': 'Epoch milliseconds of the attempt.',
  'X-Service-Delivery-Id': 'The same for every attempt of one delivery.',
  'X-Service-Delivery-Attempt': '1, 2, 3 …',
  'Idempotency-Key': 'The id of the endpoint and of the event, the same for every attempt.',
  'webhook-id': 'Standard Webhooks: the id of the event.',
  'webhook-timestamp': 'Standard Webhooks: epoch seconds of the attempt.',
  'webhook-signature':
    'Standard Webhooks: v1, and the base64 HMAC-SHA256 of `id.timestamp.body`, keyed with the 32 bytes of the secret; two of them, separated by a blank, for 24 hours after a rotation.',
};

/** What the service sends to an endpoint: one event, signed. */
const DELIVERY_CALLBACK = {
  '{$request.body#/url}': {
    post: {
      operationId: 'receiveDelivery',
      tags: ['Webhooks'],
      // The endpoint is the receiver's: it proves the sender by the signature.
      security: [],
      summary: 'An event is sent to the endpoint',
      description:
        'Verify the signature on the raw bytes of the body before reading them, compare in constant time, and answer 401 when it does not match. Any 2xx within 10 seconds is a delivery; no redirect is followed. Deliveries to one endpoint never run in parallel.',
      parameters: Object.keys(HEADERS)
        .filter((header) => header !== 'Content-Type')
        .map((header) => ({
          name: header,
          in: 'header',
          required: true,
          description: HEADER_NOTES[header],
          schema: { type: 'string' },
          example: HEADERS[header],
        })),
      requestBody: {
        required: true,
        content: {
          'application/json': {
            schema: ref('DeliveryBody'),
            examples: Object.fromEntries(
              BODIES.map((body) => JSON.parse(body) as { type: string }).map((value) => [
                value.type,
                { value },
              ]),
            ),
          },
        },
      },
      responses: {
        '2XX': { description: 'Delivered.' },
        '401': { description: 'The signature does not match.' },
        default: { description: 'Not delivered: tried again as the retry policy says.' },
      },
    },
  },
};

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

export const VIEW = webhookView(EXAMPLE_WEBHOOK);

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

export const RESUME_ERROR = shapeOf<{ field: string | null; code: string; message: string }>({
  field: { ...choice(['from']), nullable: true, enum: ['from', null] },
  code: choice(['INVALID', 'INVALID_BODY']),
  message: text(),
});
