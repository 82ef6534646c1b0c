import { scopeMask } from '../access/scopes.ts';
import { type Answer, dataAnswer, errorAnswer, listAnswer, validationAnswer } from '../http/answer.ts';
import type { DescribedError, Operation } from '../http/openapi/operation.ts';
import { answered, bodyOf, dataBody } from '../http/openapi/operation.ts';
import { choice, envelope, integer, list, page, ref, shapeOf, text, time } from '../http/openapi/schema.ts';
import {
  choiceParameter,
  FROM,
  LIST_LIMIT,
  type ListPage,
  LONG_LIST_OFFSET,
  listPageAnswer,
  OFFSET_MESSAGE,
  offsetOf,
  parameterError,
  type Query,
  readChoice,
  readLimit,
  TO,
  WINDOW_MESSAGE,
  windowOf,
} from '../http/parameters.ts';
import { jsonBody } from '../http/requestBody.ts';
import { type Call, type ChangePorts, type ReadPorts, type Route, routeFactory } from '../http/route.ts';
import {
  type Delivery,
  REPLAYABLE,
  selectDeadLetters,
  selectDeliveries,
  selectDelivery,
} from './deliveries.sql.ts';
import { DELIVERY_ID, DELIVERY_STATUSES } from './delivery.ts';
import { type SummaryCache, summarize } from './deliverySummary.ts';
import { EXAMPLE_DELIVERY, EXAMPLE_DETAIL, EXAMPLE_EXHAUSTED, EXAMPLE_PENDING } from './deliveryView.ts';
import {
  parseReplayRequest,
  REPLAY_ERRORS,
  replayDeliveries,
  replayDelivery,
  requestPing,
  type Wake,
} from './replayDeliveries.ts';
import { byId, ONE_WEBHOOK } from './webhooks.routes.ts';
import { selectWebhook } from './webhooks.sql.ts';

export const DELIVERY_STATUS = choiceParameter('status', DELIVERY_STATUSES, 'Only deliveries in this state.');

/** What the routes of one delivery answer to an id in another form, and the replay to one that it does not replay. */
export const DELIVERY_ID_MESSAGE = 'the delivery id is malformed';

export const REPLAY_MESSAGE =
  'only failed or exhausted deliveries without an attempt in flight can be replayed';

/** For a bulk replay. A million deliveries take less; a connection without an answer is cut after 150 s. */
const REPLAY_DEADLINE_MS = 140_000;

/** The window of a list of deliveries. */
const CREATED = [FROM, TO].map((end) => ({ ...end, description: `${end.description} Of \`created_at\`.` }));

const LONG_LIST: readonly DescribedError[] = [
  ['BAD_REQUEST', WINDOW_MESSAGE],
  ['BAD_REQUEST', OFFSET_MESSAGE],
];

const PAGE = { limit: LIST_LIMIT.fallback, offset: 0 };

export interface WebhookDeliveryPorts extends ReadPorts, ChangePorts {
  readonly wake: Wake;
  readonly summaries: SummaryCache;
}

/** Deliveries of the caller's endpoints: history, dead letters, summary, a test delivery, replays. */
export function webhookDeliveryRoutes(ports: WebhookDeliveryPorts): Route[] {
  const shared = { scopes: scopeMask('manage_webhooks'), versions: ['webhooks'] } as const;
  const route = routeFactory({ ...shared, shedAs: 'poll' });
  const bulk = routeFactory({ ...shared, shedAs: 'bulk' });
  return [
    {
      ...bulk('POST', '/:id/replay', REPLAY_DELIVERIES, byId(ports, replayAll)),
      deadlineMs: REPLAY_DEADLINE_MS,
    },
    bulk('GET', '/metrics/summary', SUMMARIZE_DELIVERIES, (call) => summary(ports, call)),
    bulk('GET', '/dead-letter/list', LIST_DEAD_LETTERS, (call) => deadLetter(ports, call)),
    bulk('GET', '/:id/deliveries', LIST_DELIVERIES, byId(ports, history)),
    route('POST', '/:id/test', TEST_WEBHOOK, byId(ports, test)),
    route('GET', '/:id/deliveries/:deliveryId', GET_DELIVERY, byId(ports, detail)),
    route('POST', '/deliveries/:deliveryId/replay', REPLAY_DELIVERY, (call) => replay(ports, call)),
  ];
}

const SUMMARIZE_DELIVERIES: Operation = {
  id: 'summarizeDeliveries',
  tag: 'Deliveries',
  summary: 'Count the deliveries of the last 24 hours',
  answers: [
    answered(200, 'The counts.', envelope(ref('DeliverySummary')), {
      summary: dataBody(
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
      none: dataBody(summarize({ byStatus: {}, attempts: 0, durations: [] })),
    }),
  ],
};

async function summary({ reads, summaries }: WebhookDeliveryPorts, { caller }: Call): Promise<Answer> {
  return dataAnswer(await summaries.of(reads(caller.accountId), caller.accountId));
}

const LIST_DEAD_LETTERS: Operation = {
  id: 'listDeadLetters',
  tag: 'Deliveries',
  summary: 'List exhausted deliveries',
  description: 'Of all endpoints of the account, newest first. Each can be replayed.',
  parameters: [...CREATED, LIST_LIMIT, LONG_LIST_OFFSET],
  answers: [
    answered(200, 'A page of exhausted deliveries.', page(ref('Delivery')), {
      'dead letter': bodyOf(listAnswer([EXAMPLE_EXHAUSTED], PAGE)),
    }),
  ],
  errors: LONG_LIST,
};

async function deadLetter({ reads }: WebhookDeliveryPorts, { caller, query }: Call): Promise<Answer> {
  const window = windowOf(query);
  if (window === 'invalid') return errorAnswer('BAD_REQUEST', WINDOW_MESSAGE);
  const sql = reads(caller.accountId);
  return listPageAnswer(pageOf(query), (page) =>
    selectDeadLetters(sql, caller.accountId, { ...page, ...window }),
  );
}

const LIST_DELIVERIES: Operation = {
  id: 'listDeliveries',
  tag: 'Deliveries',
  summary: 'List the deliveries of an endpoint',
  description: 'Newest first.',
  parameters: [DELIVERY_STATUS, ...CREATED, LIST_LIMIT, LONG_LIST_OFFSET],
  answers: [
    answered(200, 'A page of deliveries.', page(ref('Delivery')), {
      deliveries: bodyOf(listAnswer([EXAMPLE_DELIVERY, EXAMPLE_EXHAUSTED], PAGE)),
    }),
  ],
  errors: [...ONE_WEBHOOK, ['BAD_REQUEST', DELIVERY_STATUS.errorMessage], ...LONG_LIST],
};

async function history(
  { reads }: WebhookDeliveryPorts,
  { caller, query }: Call,
  id: number,
): Promise<Answer> {
  const status = readChoice(query, DELIVERY_STATUS);
  if (status === 'invalid') return parameterError(DELIVERY_STATUS);
  const window = windowOf(query);
  if (window === 'invalid') return errorAnswer('BAD_REQUEST', WINDOW_MESSAGE);
  const sql = reads(caller.accountId);
  if ((await selectWebhook(sql, caller.accountId, id)) === undefined) return errorAnswer('NOT_FOUND');
  return listPageAnswer(pageOf(query), (page) => selectDeliveries(sql, id, status, { ...page, ...window }));
}

const GET_DELIVERY: Operation = {
  id: 'getDelivery',
  tag: 'Deliveries',
  summary: 'Read a delivery with its payload and its attempts',
  description: 'The exact body that was signed, and how each of the last ten attempts was answered.',
  answers: [
    answered(200, 'The delivery.', envelope(ref('DeliveryDetail')), {
      'two attempts': dataBody(EXAMPLE_DETAIL),
    }),
  ],
  errors: [...ONE_WEBHOOK, ['BAD_REQUEST', DELIVERY_ID_MESSAGE]],
};

async function detail(
  { reads }: WebhookDeliveryPorts,
  { caller, params }: Call,
  id: number,
): Promise<Answer> {
  const deliveryId = params['deliveryId'] ?? '';
  if (!DELIVERY_ID.test(deliveryId)) return errorAnswer('BAD_REQUEST', DELIVERY_ID_MESSAGE);
  const delivery = await selectDelivery(reads(caller.accountId), caller.accountId, id, deliveryId);
  return delivery === undefined ? errorAnswer('NOT_FOUND') : dataAnswer(delivery);
}

const TEST_WEBHOOK: Operation = {
  id: 'testWebhook',
  tag: 'Deliveries',
  summary: 'Send a test event',
  description: 'An ordinary delivery of type ping to this endpoint alone, also while it is inactive.',
  answers: [
    answered(202, 'The delivery, waiting for its first attempt.', envelope(ref('Delivery')), {
      ping: dataBody(EXAMPLE_PENDING),
    }),
  ],
  errors: ONE_WEBHOOK,
};

async function test(ports: WebhookDeliveryPorts, { caller, nowMs }: Call, id: number): Promise<Answer> {
  const { sql } = ports.writes(caller.accountId);
  const delivery = await requestPing(sql, ports.wake, caller.accountId, id, nowMs);
  return delivery === undefined ? errorAnswer('NOT_FOUND') : queuedAnswer(delivery);
}

const REPLAY_DELIVERY: Operation = {
  id: 'replayDelivery',
  tag: 'Deliveries',
  summary: 'Send a failed or exhausted delivery again',
  description: 'At once, with a fresh budget of attempts. The attempts are counted on.',
  answers: [
    answered(202, 'The delivery, waiting for its attempt.', envelope(ref('Delivery')), {
      requeued: dataBody({
        ...EXAMPLE_EXHAUSTED,
        status: 'requeued',
        next_attempt_at: EXAMPLE_DELIVERY.created_at,
      }),
    }),
  ],
  errors: [['BAD_REQUEST', DELIVERY_ID_MESSAGE], ['BAD_REQUEST', REPLAY_MESSAGE], 'NOT_FOUND'],
};

async function replay(ports: WebhookDeliveryPorts, { caller, params }: Call): Promise<Answer> {
  const deliveryId = params['deliveryId'] ?? '';
  if (!DELIVERY_ID.test(deliveryId)) return errorAnswer('BAD_REQUEST', DELIVERY_ID_MESSAGE);
  const { sql } = ports.writes(caller.accountId);
  const delivery = await replayDelivery(sql, ports.wake, caller.accountId, deliveryId);
  if (delivery === undefined) return errorAnswer('NOT_FOUND');
  return delivery === 'not_replayable' ? errorAnswer('BAD_REQUEST', REPLAY_MESSAGE) : queuedAnswer(delivery);
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

async function replayAll(ports: WebhookDeliveryPorts, { caller, body }: Call, id: number): Promise<Answer> {
  const json = jsonBody(body);
  if (!json.ok) return json.error;
  const request = parseReplayRequest(json.value);
  if (!request.ok) return validationAnswer(request.error);
  const { sql } = ports.writes(caller.accountId);
  const requeued = await replayDeliveries(sql, ports.wake, caller.accountId, id, request.value);
  return requeued === undefined ? errorAnswer('NOT_FOUND') : { ...dataAnswer({ requeued }), status: 202 };
}

function queuedAnswer(delivery: Delivery): Answer {
  return { ...dataAnswer(delivery), status: 202 };
}

function pageOf(query: Query): ListPage {
  return { limit: readLimit(query, LIST_LIMIT), offset: offsetOf(query) };
}
