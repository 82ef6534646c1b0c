import type { CidrSet } from '../access/cidrSet.ts';
import { scopeMask } from '../access/scopes.ts';
import { type Answer, dataAnswer, errorAnswer, listAnswer, validationAnswer } from '../http/answer.ts';
import { idOf, malformedId } from '../http/parameters/id.ts';
import { readLimit } from '../http/parameters/parameter.ts';
import { LIST_LIMIT } from '../http/parameters/parameters.ts';
import { offsetOf } from '../http/parameters/query.ts';
import type { ChangePorts, ReadPorts } from '../http/ports.ts';
import { jsonBody } from '../http/requestBody.ts';
import { type Call, type Route, routeFactory } from '../http/route.ts';
import { ENDPOINT_ERRORS, type EndpointError, parseEndpointCreate, parseEndpointUpdate } from './endpoint.ts';
import {
  changeWebhook,
  createWebhook,
  removeWebhook,
  rotateWebhookSecret,
  type WebhookWithSecret,
  type WebhookWritePorts,
} from './saveWebhook.ts';
import {
  CREATE_WEBHOOK,
  DELETE_WEBHOOK,
  GET_WEBHOOK,
  LIST_WEBHOOKS,
  ROTATE_SECRET,
  UPDATE_WEBHOOK,
} from './webhookOperations.ts';
import { selectWebhook, selectWebhooks, type Webhook } from './webhooks.sql.ts';
import { webhookView } from './webhookViews.ts';

export interface WebhookPorts extends ReadPorts, ChangePorts, Pick<WebhookWritePorts, 'secretsKey' | 'wake'> {
  readonly allowNets: CidrSet;
}

/** Endpoints of the caller's account: create, list, read, change, delete, rotate the secret. */
export function webhookRoutes(ports: WebhookPorts): Route[] {
  const route = routeFactory({ scopes: scopeMask('manage_webhooks'), versions: ['webhooks'] });
  return [
    route('POST', '/', CREATE_WEBHOOK, (call) => create(ports, call)),
    route('GET', '/', LIST_WEBHOOKS, (call) => list(ports, call)),
    route('GET', '/:id', GET_WEBHOOK, (call) => detail(ports, call)),
    route('PUT', '/:id', UPDATE_WEBHOOK, (call) => update(ports, call)),
    route('DELETE', '/:id', DELETE_WEBHOOK, (call) => remove(ports, call)),
    route('POST', '/:id/rotate-secret', ROTATE_SECRET, (call) => rotate(ports, call)),
  ];
}

async function create(ports: WebhookPorts, { caller, body }: Call): Promise<Answer> {
  const json = jsonBody(body);
  if (!json.ok) return json.error;
  const draft = parseEndpointCreate(json.value, ports.allowNets);
  if (!draft.ok) return endpointErrorAnswer(draft.error);
  const created = await createWebhook(writePorts(ports, caller), caller, draft.value);
  if (created === undefined) return validationAnswer([ENDPOINT_ERRORS.limitReached]);
  const headers = { Location: `/api/webhooks/${created.webhook.id}` };
  return { ...secretAnswer(created), status: 201, headers };
}

async function list({ reads }: WebhookPorts, { caller, query }: Call): Promise<Answer> {
  const page = { limit: readLimit(query, LIST_LIMIT), offset: offsetOf(query) };
  const webhooks = await selectWebhooks(reads(caller.accountId), caller.accountId, page);
  return listAnswer(webhooks.map(webhookView), page);
}

async function detail({ reads }: WebhookPorts, { caller, params }: Call): Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  return found(await selectWebhook(reads(caller.accountId), caller.accountId, id));
}

async function update(ports: WebhookPorts, { caller, params, body }: Call): Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  const json = jsonBody(body);
  if (!json.ok) return json.error;
  const change = parseEndpointUpdate(json.value, ports.allowNets);
  if (!change.ok) return endpointErrorAnswer(change.error);
  return found(await changeWebhook(writePorts(ports, caller), caller, id, change.value));
}

async function remove(ports: WebhookPorts, { caller, params }: Call): Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  const isRemoved = await removeWebhook(writePorts(ports, caller), caller, id);
  return isRemoved ? { status: 204, body: null } : errorAnswer('NOT_FOUND');
}

async function rotate(ports: WebhookPorts, { caller, params }: Call): Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  const rotated = await rotateWebhookSecret(writePorts(ports, caller), caller, id);
  return rotated === undefined ? errorAnswer('NOT_FOUND') : secretAnswer(rotated);
}

function writePorts({ writes, secretsKey, wake }: WebhookPorts, caller: Call['caller']): WebhookWritePorts {
  return { write: writes(caller.accountId), secretsKey, wake };
}

function found(webhook: Webhook | undefined): Answer {
  return webhook === undefined ? errorAnswer('NOT_FOUND') : dataAnswer(webhookView(webhook));
}

function secretAnswer({ webhook, secret }: WebhookWithSecret): Answer {
  return dataAnswer({ ...webhookView(webhook), secret });
}

function endpointErrorAnswer(error: EndpointError): Answer {
  return error.kind === 'url_invalid'
    ? errorAnswer('WEBHOOK_URL_INVALID', error.message)
    : validationAnswer(error.errors);
}
