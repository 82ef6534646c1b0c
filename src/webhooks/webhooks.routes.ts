import type { KeyObject } from 'node:crypto';
import type { CidrSet } from '../access/ipAddress.ts';
import { scopeMask } from '../access/scopes.ts';
import { type Answer, dataAnswer, errorAnswer, listAnswer, validationAnswer } from '../http/answer.ts';
import type { DescribedError, Operation, RequestBodyDescription } from '../http/openapi/operation.ts';
import { answered, bodyOf, dataBody } from '../http/openapi/operation.ts';
import { choice, envelope, nullable, page, ref, shapeOf, text, time } from '../http/openapi/schema.ts';
import {
  ID_MESSAGE,
  idOf,
  LIST_LIMIT,
  malformedId,
  OFFSET,
  offsetOf,
  readLimit,
} from '../http/parameters.ts';
import { jsonBody } from '../http/requestBody.ts';
import { type Call, type ChangePorts, type ReadPorts, type Route, routeFactory } from '../http/route.ts';
import { URL_ERROR_MESSAGES } from './delivery/urlSafety.ts';
import { DELIVERY_CALLBACK } from './deliveryView.ts';
import {
  ENDPOINT_ERRORS,
  ENDPOINT_LIMITS,
  type EndpointError,
  EXAMPLE_SECRET,
  EXAMPLE_WEBHOOK,
  parseEndpointCreate,
  parseEndpointUpdate,
  type Webhook,
} from './endpoint.ts';
import { countLeftOut } from './pauses/leftOut.sql.ts';
import { parseResumeRequest, REPLAY_ERRORS, type Wake } from './replayDeliveries.ts';
import {
  changeWebhook,
  createWebhook,
  removeWebhook,
  resumeWebhook,
  rotateWebhookSecret,
  type WebhookWithSecret,
} from './saveWebhook.ts';
import { selectWebhook, selectWebhooks } from './webhooks.sql.ts';

/** The errors of a route about one endpoint. */
export const ONE_WEBHOOK: readonly DescribedError[] = [['BAD_REQUEST', ID_MESSAGE], 'NOT_FOUND'];

const URL_ERRORS: readonly DescribedError[] = [
  ['WEBHOOK_URL_INVALID', URL_ERROR_MESSAGES.not_https],
  ['WEBHOOK_URL_INVALID', URL_ERROR_MESSAGES.address_not_public],
];

const WEBHOOK_BODY: Pick<RequestBodyDescription, 'fieldError' | 'errorExamples'> = {
  fieldError: ref('WebhookFieldError'),
  errorExamples: {
    'every invalid field at once': [ENDPOINT_ERRORS.eventsInvalid, ENDPOINT_ERRORS.maxRetriesOutOfRange],
    'not a JSON object': [ENDPOINT_ERRORS.bodyInvalid],
  },
};

interface WebhookPorts extends ReadPorts, ChangePorts {
  /** Encrypts signing secrets at rest. */
  readonly secretsKey: KeyObject;
  readonly wake: Wake;
  readonly allowNets: CidrSet;
}

/** Endpoints of the caller's account: create, list, read, change, delete, rotate the secret, end a pause. */
export function webhookRoutes(ports: WebhookPorts): Route[] {
  const shared = { scopes: scopeMask('manage_webhooks'), versions: ['webhooks'] } as const;
  const route = routeFactory({ ...shared, shedAs: 'poll' });
  const bulk = routeFactory({ ...shared, shedAs: 'bulk' });
  return [
    route('POST', '/', CREATE_WEBHOOK, (call) => create(ports, call)),
    bulk('GET', '/', LIST_WEBHOOKS, (call) => list(ports, call)),
    route('GET', '/:id', GET_WEBHOOK, byId(ports, detail)),
    route('PUT', '/:id', UPDATE_WEBHOOK, byId(ports, update)),
    route('DELETE', '/:id', DELETE_WEBHOOK, byId(ports, remove)),
    route('POST', '/:id/rotate-secret', ROTATE_SECRET, byId(ports, rotate)),
    route('GET', '/:id/left-out', COUNT_LEFT_OUT, byId(ports, leftOut)),
    route('POST', '/:id/resume', RESUME_WEBHOOK, byId(ports, resume)),
  ];
}

const CREATE_WEBHOOK: Operation = {
  id: 'createWebhook',
  tag: 'Webhooks',
  summary: 'Create an endpoint',
  description: `At most ${ENDPOINT_LIMITS.perOwner} per account. The signing secret is shown in this answer and never again. Nothing is sent to the url before the first event or test.`,
  body: {
    ...WEBHOOK_BODY,
    schema: ref('WebhookInput'),
    examples: {
      'some events': {
        url: EXAMPLE_WEBHOOK.url,
        description: EXAMPLE_WEBHOOK.description,
        events: EXAMPLE_WEBHOOK.events,
      },
      everything: { url: EXAMPLE_WEBHOOK.url, events: ['*'] },
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
      { created: dataBody({ ...EXAMPLE_WEBHOOK, secret: EXAMPLE_SECRET }) },
      ['Location'],
    ),
  ],
  errors: URL_ERRORS,
  callbacks: { delivery: DELIVERY_CALLBACK },
};

async function create(ports: WebhookPorts, { caller, body }: Call): Promise<Answer> {
  const json = jsonBody(body);
  if (!json.ok) return json.error;
  const draft = parseEndpointCreate(json.value, ports.allowNets);
  if (!draft.ok) return endpointErrorAnswer(draft.error);
  const created = await createWebhook(ports.writes(caller.accountId), ports.secretsKey, caller, draft.value);
  if (created === undefined) return validationAnswer([ENDPOINT_ERRORS.limitReached]);
  const headers = { Location: `/api/webhooks/${created.webhook.id}` };
  return { ...secretAnswer(created), status: 201, headers };
}

const LIST_WEBHOOKS: Operation = {
  id: 'listWebhooks',
  tag: 'Webhooks',
  summary: 'List endpoints',
  parameters: [LIST_LIMIT, OFFSET],
  answers: [
    answered(200, 'A page of endpoints, by id.', page(ref('Webhook')), {
      endpoints: bodyOf(listAnswer([EXAMPLE_WEBHOOK], { limit: LIST_LIMIT.fallback, offset: 0 })),
    }),
  ],
};

async function list({ reads }: WebhookPorts, { caller, query }: Call): Promise<Answer> {
  const page = { limit: readLimit(query, LIST_LIMIT), offset: offsetOf(query) };
  const webhooks = await selectWebhooks(reads(caller.accountId), caller.accountId, page);
  return listAnswer(webhooks, page);
}

const GET_WEBHOOK: Operation = {
  id: 'getWebhook',
  tag: 'Webhooks',
  summary: 'Read one endpoint',
  answers: [
    answered(200, 'The endpoint, without its secret.', envelope(ref('Webhook')), {
      endpoint: dataBody(EXAMPLE_WEBHOOK),
      'paused by the service': dataBody({
        ...EXAMPLE_WEBHOOK,
        paused: { reason: 'endpoint_quota', since: '2026-03-02T08:40:00.000Z' },
      }),
      'whose receiver fails': dataBody({
        ...EXAMPLE_WEBHOOK,
        failing: {
          since: '2026-03-02T02:10:00.000Z',
          attempts: 14,
          next_attempt_at: '2026-03-02T02:26:00.000Z',
        },
      }),
    }),
  ],
  errors: ONE_WEBHOOK,
};

async function detail({ reads }: WebhookPorts, { caller }: Call, id: number): Promise<Answer> {
  return found(await selectWebhook(reads(caller.accountId), caller.accountId, id));
}

const UPDATE_WEBHOOK: Operation = {
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
      paused: dataBody({ ...EXAMPLE_WEBHOOK, active: false }),
    }),
  ],
  errors: [...ONE_WEBHOOK, ...URL_ERRORS],
};

async function update(ports: WebhookPorts, { caller, body }: Call, id: number): Promise<Answer> {
  const json = jsonBody(body);
  if (!json.ok) return json.error;
  const change = parseEndpointUpdate(json.value, ports.allowNets);
  if (!change.ok) return endpointErrorAnswer(change.error);
  return found(await changeWebhook(ports.writes(caller.accountId), ports.wake, caller, id, change.value));
}

const DELETE_WEBHOOK: Operation = {
  id: 'deleteWebhook',
  tag: 'Webhooks',
  summary: 'Delete an endpoint',
  answers: [{ status: 204, description: 'It is gone, and its deliveries with it.' }],
  errors: ONE_WEBHOOK,
};

async function remove(ports: WebhookPorts, { caller }: Call, id: number): Promise<Answer> {
  const isRemoved = await removeWebhook(ports.writes(caller.accountId), caller, id);
  return isRemoved ? { status: 204, body: null } : errorAnswer('NOT_FOUND');
}

const ROTATE_SECRET: Operation = {
  id: 'rotateWebhookSecret',
  tag: 'Webhooks',
  summary: 'Replace the signing secret',
  description:
    'The new secret signs at once. For 24 hours the old one signs beside it, in the header webhook-signature only.',
  answers: [
    answered(200, 'The endpoint with its new secret.', envelope(ref('WebhookWithSecret')), {
      rotated: dataBody({ ...EXAMPLE_WEBHOOK, secret: EXAMPLE_SECRET }),
    }),
  ],
  errors: ONE_WEBHOOK,
};

async function rotate(ports: WebhookPorts, { caller }: Call, id: number): Promise<Answer> {
  const rotated = await rotateWebhookSecret(ports.writes(caller.accountId), ports.secretsKey, caller, id);
  return rotated === undefined ? errorAnswer('NOT_FOUND') : secretAnswer(rotated);
}

const COUNT_LEFT_OUT: Operation = {
  id: 'countLeftOut',
  tag: 'Webhooks',
  summary: 'Count what a paused endpoint lacks',
  description:
    'Events since the service paused the endpoint, and those whose deliveries are still being made after it was resumed. An event of the minute before the pause may be counted although it was delivered.',
  answers: [
    answered(200, 'How many events, by the hour.', envelope(ref('LeftOut')), {
      'two hours': dataBody({
        events: 21_730,
        is_complete: true,
        hours: [
          { from: '2026-03-02T08:00:00.000Z', events: 6_112 },
          { from: '2026-03-02T09:00:00.000Z', events: 15_618 },
        ],
      }),
    }),
  ],
  errors: ONE_WEBHOOK,
};

async function leftOut({ reads }: WebhookPorts, { caller }: Call, id: number): Promise<Answer> {
  const sql = reads(caller.accountId);
  if ((await selectWebhook(sql, caller.accountId, id)) === undefined) return errorAnswer('NOT_FOUND');
  return dataAnswer(await countLeftOut(sql, caller.accountId, id));
}

const RESUME_ERROR = shapeOf<{ field: string | null; code: string; message: string }>({
  field: { ...choice(['from']), nullable: true, enum: ['from', null] },
  code: choice(['INVALID', 'INVALID_BODY']),
  message: text(),
});

const RESUME_WEBHOOK: Operation = {
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
    answered(200, 'The endpoint as it is now.', envelope(ref('Webhook')), {
      resumed: dataBody(EXAMPLE_WEBHOOK),
    }),
  ],
  errors: ONE_WEBHOOK,
};

async function resume({ writes }: WebhookPorts, { caller, body }: Call, id: number): Promise<Answer> {
  const json = jsonBody(body);
  if (!json.ok) return json.error;
  const request = parseResumeRequest(json.value);
  if (!request.ok) return validationAnswer(request.error);
  return found(await resumeWebhook(writes(caller.accountId), caller, id, request.value.fromMs));
}

/** A handler of a route about one endpoint, from one that takes its id. */
export function byId<Ports>(
  ports: Ports,
  handle: (ports: Ports, call: Call, id: number) => Promise<Answer>,
): (call: Call) => Answer | Promise<Answer> {
  return (call) => {
    const id = idOf(call.params);
    return id === null ? malformedId() : handle(ports, call, id);
  };
}

function found(webhook: Webhook | undefined): Answer {
  return webhook === undefined ? errorAnswer('NOT_FOUND') : dataAnswer(webhook);
}

function secretAnswer({ webhook, secret }: WebhookWithSecret): Answer {
  return dataAnswer({ ...webhook, secret });
}

function endpointErrorAnswer(error: EndpointError): Answer {
  return error.kind === 'url_invalid'
    ? errorAnswer('WEBHOOK_URL_INVALID', error.message)
    : validationAnswer(error.errors);
}
