import { scopeMask } from '../access/scopes.ts';
import { type Answer, dataAnswer, errorAnswer, listAnswer } from '../http/answer.ts';
import { type ListPage, listPageAnswer, OFFSET_MESSAGE } from '../http/listPageAnswer.ts';
import { answered, bodyOf, dataBody } from '../http/openapi/body.ts';
import { envelope, page } from '../http/openapi/commonSchemas.ts';
import type { DescribedError, Operation } from '../http/openapi/operation.ts';
import { ref } from '../http/openapi/schema.ts';
import { idOf, malformedId } from '../http/parameters/id.ts';
import { choiceParameter, parameterError, readChoice, readLimit } from '../http/parameters/parameter.ts';
import { FROM, LIST_LIMIT, LONG_LIST_OFFSET, TO, WINDOW_MESSAGE } from '../http/parameters/parameters.ts';
import { offsetOf, type Query, windowOf } from '../http/parameters/query.ts';
import type { ChangePorts, ReadPorts } from '../http/ports.ts';
import { type Call, type Route, routeFactory } from '../http/route.ts';
import { type Delivery, selectDeadLetters, selectDeliveries } from './deliveries.sql.ts';
import { DELIVERY_STATUSES } from './delivery/transition.ts';
import { type SummaryCache, summarize } from './deliverySummary.ts';
import { isDeliveryId } from './message.ts';
import { replayDelivery, requestPing } from './requestDelivery.ts';
import type { WebhookWritePorts } from './saveWebhook.ts';
import { EXAMPLE_DELIVERY, EXAMPLE_EXHAUSTED, EXAMPLE_PENDING } from './webhookExamples.ts';
import { ONE_WEBHOOK } from './webhookOperations.ts';
import { selectWebhook } from './webhooks.sql.ts';
import { deliveryView, summaryView } from './webhookViews.ts';

export const DELIVERY_STATUS = choiceParameter('status', DELIVERY_STATUSES, 'Only deliveries in this state.');

/** What the replay route answers to an id in another form, and to a delivery that it does not replay. */
export const DELIVERY_ID_MESSAGE = 'the delivery id is malformed';
export const REPLAY_MESSAGE =
  'only failed or exhausted deliveries without an attempt in flight can be replayed';

export interface WebhookDeliveryPorts extends ReadPorts, ChangePorts, Pick<WebhookWritePorts, 'wake'> {
  readonly summaries: SummaryCache;
}

/** Deliveries of the caller's endpoints: history, dead letters, summary, a test delivery, a replay. */
export function webhookDeliveryRoutes(ports: WebhookDeliveryPorts): Route[] {
  const route = routeFactory({ scopes: scopeMask('manage_webhooks'), versions: ['webhooks'] });
  return [
    route('GET', '/metrics/summary', SUMMARIZE_DELIVERIES, (call) => summary(ports, call)),
    route('GET', '/dead-letter/list', LIST_DEAD_LETTERS, (call) => deadLetter(ports, call)),
    route('GET', '/:id/deliveries', LIST_DELIVERIES, (call) => history(ports, call)),
    route('POST', '/:id/test', TEST_WEBHOOK, (call) => test(ports, call)),
    route('POST', '/deliveries/:deliveryId/replay', REPLAY_DELIVERY, (call) => replay(ports, call)),
  ];
}

async function summary({ reads, summaries }: WebhookDeliveryPorts, { caller }: Call): Promise<Answer> {
  return dataAnswer(summaryView(await summaries.of(reads(caller.accountId), caller.accountId)));
}

async function deadLetter({ reads }: WebhookDeliveryPorts, { caller, query }: Call): Promise<Answer> {
  const window = windowOf(query);
  if (window === 'invalid') return errorAnswer('BAD_REQUEST', WINDOW_MESSAGE);
  const sql = reads(caller.accountId);
  return listPageAnswer(
    pageOf(query),
    (page) => selectDeadLetters(sql, caller.accountId, { ...page, ...window }),
    deliveryView,
  );
}

async function history({ reads }: WebhookDeliveryPorts, { caller, params, query }: Call): Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  const status = readChoice(query, DELIVERY_STATUS);
  if (status === 'invalid') return parameterError(DELIVERY_STATUS);
  const window = windowOf(query);
  if (window === 'invalid') return errorAnswer('BAD_REQUEST', WINDOW_MESSAGE);
  const sql = reads(caller.accountId);
  if ((await selectWebhook(sql, caller.accountId, id)) === undefined) return errorAnswer('NOT_FOUND');
  return listPageAnswer(
    pageOf(query),
    (page) => selectDeliveries(sql, id, status, { ...page, ...window }),
    deliveryView,
  );
}

/** An ordinary delivery of type ping, to this endpoint only, also when it is inactive. */
async function test(ports: WebhookDeliveryPorts, { caller, params, nowMs }: Call): Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  const delivery = await requestPing(writePorts(ports, caller), caller, id, nowMs);
  return delivery === undefined ? errorAnswer('NOT_FOUND') : queuedAnswer(delivery);
}

async function replay(ports: WebhookDeliveryPorts, { caller, params }: Call): Promise<Answer> {
  const deliveryId = params['deliveryId'] ?? '';
  if (!isDeliveryId(deliveryId)) return errorAnswer('BAD_REQUEST', DELIVERY_ID_MESSAGE);
  const delivery = await replayDelivery(writePorts(ports, caller), caller, deliveryId);
  if (delivery === undefined) return errorAnswer('NOT_FOUND');
  return delivery === 'not_replayable' ? errorAnswer('BAD_REQUEST', REPLAY_MESSAGE) : queuedAnswer(delivery);
}

function writePorts({ writes, wake }: WebhookDeliveryPorts, caller: Call['caller']) {
  return { write: writes(caller.accountId), wake };
}

function queuedAnswer(delivery: Delivery): Answer {
  return { ...dataAnswer(deliveryView(delivery)), status: 202 };
}

function pageOf(query: Query): ListPage {
  return { limit: readLimit(query, LIST_LIMIT), offset: offsetOf(query) };
}

/** The window of a list of deliveries. */
const CREATED = [FROM, TO].map((end) => ({ ...end, description: `${end.description} Of \`created_at\`.` }));

const LONG_LIST: readonly DescribedError[] = [
  ['BAD_REQUEST', WINDOW_MESSAGE],
  ['BAD_REQUEST', OFFSET_MESSAGE],
];

const PAGE = { limit: LIST_LIMIT.fallback, offset: 0 };

const LIST_DELIVERIES: Operation = {
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

const LIST_DEAD_LETTERS: Operation = {
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

const SUMMARIZE_DELIVERIES: Operation = {
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

const TEST_WEBHOOK: Operation = {
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

const REPLAY_DELIVERY: Operation = {
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
