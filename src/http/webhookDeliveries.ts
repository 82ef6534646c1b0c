import { scopeMask } from '../access/scopes.ts';
import { isDeliveryId, newDeliveryIds, newEventId, pingBody } from '../delivery/message.ts';
import { transition } from '../delivery/transition.ts';
import type { KeptSummaries } from '../flows/keptSummaries.ts';
import {
  type Delivery,
  insertDeliveries,
  lockDelivery,
  requeueDelivery,
  selectDeadLetters,
  selectDeliveries,
} from '../store/deliveries.ts';
import { selectWebhook } from '../store/webhooks.ts';
import { type Answer, dataAnswer, errorAnswer } from './answer.ts';
import { deepPageAnswer, type ListPage } from './deepPage.ts';
import { idOf, malformedId } from './id.ts';
import {
  LIST_DEAD_LETTERS,
  LIST_DELIVERIES,
  REPLAY_DELIVERY,
  SUMMARIZE_DELIVERIES,
  TEST_WEBHOOK,
} from './openapi/deliveryOperations.ts';
import type { Operation } from './openapi/operation.ts';
import { readChoice, readLimit, refuseChoice } from './parameter.ts';
import {
  DELIVERY_ID_REFUSAL,
  DELIVERY_STATUS,
  LIST_LIMIT,
  REPLAY_REFUSAL,
  WINDOW_REFUSAL,
} from './parameters.ts';
import type { ChangePorts, ReadPorts } from './ports.ts';
import { offsetOf, type Query, windowOf } from './query.ts';
import type { Call, Route } from './route.ts';
import { deliveryView, summaryView } from './webhookViews.ts';

export interface WebhookDeliveryPorts extends ReadPorts, ChangePorts {
  readonly summaries: KeptSummaries;
  /** Wakes the lanes of these endpoints. */
  readonly wake: (webhookIds: readonly number[]) => void;
}

/** Deliveries of the caller's endpoints: history, dead letter, summary, a test, and another try. */
export function webhookDeliveryRoutes(ports: WebhookDeliveryPorts): Route[] {
  const route = (
    method: Route['method'],
    path: string,
    describe: Operation,
    handle: Route['handle'],
  ): Route => ({
    method,
    path,
    scopes: scopeMask('manage_webhooks'),
    versions: ['webhooks'],
    describe,
    handle,
  });
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
  if (window === 'invalid') return errorAnswer('BAD_REQUEST', WINDOW_REFUSAL);
  const sql = reads(caller.accountId);
  return deepPageAnswer(
    pageOf(query),
    (page) => selectDeadLetters(sql, caller.accountId, { ...page, ...window }),
    deliveryView,
  );
}

async function history({ reads }: WebhookDeliveryPorts, { caller, params, query }: Call): Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  const status = readChoice(query, DELIVERY_STATUS);
  if (status === 'invalid') return refuseChoice(DELIVERY_STATUS);
  const window = windowOf(query);
  if (window === 'invalid') return errorAnswer('BAD_REQUEST', WINDOW_REFUSAL);
  const sql = reads(caller.accountId);
  if ((await selectWebhook(sql, caller.accountId, id)) === undefined) return errorAnswer('NOT_FOUND');
  return deepPageAnswer(
    pageOf(query),
    (page) => selectDeliveries(sql, id, status, { ...page, ...window }),
    deliveryView,
  );
}

/** An ordinary delivery of type ping, to this endpoint only, also when it is inactive. */
async function test(
  { writes, wake }: WebhookDeliveryPorts,
  { caller, params, nowMs }: Call,
): Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  const { sql } = writes(caller.accountId);
  if ((await selectWebhook(sql, caller.accountId, id)) === undefined) return errorAnswer('NOT_FOUND');
  const eventId = newEventId();
  const body = pingBody(eventId, id, nowMs);
  const [deliveryId = ''] = newDeliveryIds(1);
  const ping = { id: deliveryId, webhookId: id, eventId, eventType: 'ping' as const, body };
  const [delivery] = await sql.begin((tx) => insertDeliveries(tx, [ping], true));
  return delivery === undefined ? errorAnswer('NOT_FOUND') : accepted(delivery, wake);
}

async function replay({ writes, wake }: WebhookDeliveryPorts, { caller, params }: Call): Promise<Answer> {
  const deliveryId = params['deliveryId'] ?? '';
  if (!isDeliveryId(deliveryId)) return errorAnswer('BAD_REQUEST', DELIVERY_ID_REFUSAL);
  const outcome = await writes(caller.accountId).sql.begin(async (tx) => {
    const locked = await lockDelivery(tx, caller.accountId, deliveryId);
    if (locked === undefined) return 'not_found';
    const next = transition(
      locked.delivery.status,
      { kind: 'replay', inFlight: locked.inFlight },
      { policy: 'none', maxRetries: 1 },
      0,
    );
    return next === null ? 'refused' : requeueDelivery(tx, deliveryId);
  });
  if (outcome === 'not_found') return errorAnswer('NOT_FOUND');
  if (outcome === 'refused') {
    return errorAnswer('BAD_REQUEST', REPLAY_REFUSAL);
  }
  return accepted(outcome, wake);
}

function accepted(delivery: Delivery, wake: WebhookDeliveryPorts['wake']): Answer {
  wake([delivery.webhookId]);
  return { ...dataAnswer(deliveryView(delivery)), status: 202 };
}

function pageOf(query: Query): ListPage {
  return { limit: readLimit(query, LIST_LIMIT), offset: offsetOf(query) };
}
