import { scopeMask } from '../access/scopes.ts';
import { type Answer, dataAnswer, errorAnswer } from '../http/answer.ts';
import { idOf, malformedId } from '../http/id.ts';
import { type ListPage, listPageAnswer } from '../http/listPageAnswer.ts';
import { parameterError, readChoice, readLimit } from '../http/parameter.ts';
import {
  DELIVERY_ID_MESSAGE,
  DELIVERY_STATUS,
  LIST_LIMIT,
  REPLAY_MESSAGE,
  WINDOW_MESSAGE,
} from '../http/parameters.ts';
import type { ChangePorts, ReadPorts } from '../http/ports.ts';
import { offsetOf, type Query, windowOf } from '../http/query.ts';
import { type Call, type Route, routeFactory } from '../http/route.ts';
import { type Delivery, selectDeadLetters, selectDeliveries } from './deliveries.sql.ts';
import {
  LIST_DEAD_LETTERS,
  LIST_DELIVERIES,
  REPLAY_DELIVERY,
  SUMMARIZE_DELIVERIES,
  TEST_WEBHOOK,
} from './deliveryOperations.ts';
import { isDeliveryId } from './message.ts';
import { replayDelivery, requestPing } from './requestDelivery.ts';
import type { WebhookWritePorts } from './saveWebhook.ts';
import type { SummaryCache } from './summaryCache.ts';
import { selectWebhook } from './webhooks.sql.ts';
import { deliveryView, summaryView } from './webhookViews.ts';

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
