import type { KeyObject } from 'node:crypto';
import type { CidrSet } from '../access/cidrSet.ts';
import { scopeMask } from '../access/scopes.ts';
import {
  ENDPOINT_ERRORS,
  ENDPOINT_LIMITS,
  type EndpointFault,
  parseEndpointCreate,
  parseEndpointUpdate,
} from '../delivery/endpoint.ts';
import { newSecret, seal } from '../delivery/secretBox.ts';
import { writeWorlds } from '../flows/writeWorlds.ts';
import { deleteWebhook } from '../store/removedWebhooks.ts';
import {
  insertWebhook,
  rotateSecret,
  selectWebhook,
  selectWebhooks,
  updateWebhook,
  type Webhook,
} from '../store/webhooks.ts';
import { type Answer, dataAnswer, errorAnswer, listAnswer, validationAnswer } from './answer.ts';
import { idOf, malformedId } from './id.ts';
import { jsonBody } from './jsonBody.ts';
import type { Operation } from './openapi/operation.ts';
import {
  CREATE_WEBHOOK,
  DELETE_WEBHOOK,
  GET_WEBHOOK,
  LIST_WEBHOOKS,
  ROTATE_SECRET,
  UPDATE_WEBHOOK,
} from './openapi/webhookOperations.ts';
import { readLimit } from './parameter.ts';
import { LIST_LIMIT } from './parameters.ts';
import type { ChangePorts, ReadPorts } from './ports.ts';
import { offsetOf } from './query.ts';
import type { Call, Route } from './route.ts';
import { webhookView } from './webhookViews.ts';

const MAX_BODY_BYTES = 1024 * 1024;
/** How long a replaced secret goes on signing beside the new one. */
const SECRET_OVERLAP_HOURS = 24;

export interface WebhookPorts extends ReadPorts, ChangePorts {
  /** Wakes the lanes of these endpoints. */
  readonly wake: (webhookIds: readonly number[]) => void;
  readonly secretsKey: KeyObject;
  readonly allowNets: CidrSet;
}

/** Endpoints of the caller's account: create, list, read, change, delete, rotate the secret. */
export function webhookRoutes(ports: WebhookPorts): Route[] {
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
    ...(describe.body === undefined ? {} : { maxBodyBytes: MAX_BODY_BYTES }),
    describe,
    handle,
  });
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
  if (!draft.ok) return faultAnswer(draft.error);
  const secret = newSecret();
  const webhook = await writeWorlds(ports.writes(caller.accountId), async ({ tx, changed }) => {
    const sealed = seal(ports.secretsKey, secret);
    const made = await insertWebhook(tx, caller.accountId, draft.value, sealed, ENDPOINT_LIMITS.perOwner);
    if (made !== undefined) changed({ kind: 'webhook', worldId: ownWorld(caller), entityIds: [made.id] });
    return made;
  });
  if (webhook === undefined) return validationAnswer([ENDPOINT_ERRORS.limitReached]);
  const answer = dataAnswer({ ...webhookView(webhook), secret });
  return { ...answer, status: 201, headers: { Location: `/api/webhooks/${webhook.id}` } };
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
  if (!change.ok) return faultAnswer(change.error);
  const webhook = await writeWorlds(ports.writes(caller.accountId), async ({ tx, changed }) => {
    const updated = await updateWebhook(tx, caller.accountId, id, change.value);
    if (updated !== undefined) changed({ kind: 'webhook', worldId: ownWorld(caller), entityIds: [id] });
    return updated;
  });
  // What was held while it was inactive may be due.
  if (webhook?.active === true) ports.wake([id]);
  return found(webhook);
}

async function remove(ports: WebhookPorts, { caller, params }: Call): Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  const removed = await writeWorlds(ports.writes(caller.accountId), async ({ tx, changed }) => {
    const gone = await deleteWebhook(tx, caller.accountId, id);
    if (gone) changed({ kind: 'webhook', worldId: ownWorld(caller), entityIds: [id] });
    return gone;
  });
  return removed ? { status: 204, body: null } : errorAnswer('NOT_FOUND');
}

async function rotate({ writes, secretsKey }: WebhookPorts, { caller, params }: Call): Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  const secret = newSecret();
  const { sql } = writes(caller.accountId);
  const webhook = await sql.begin((tx) =>
    rotateSecret(tx, caller.accountId, id, seal(secretsKey, secret), SECRET_OVERLAP_HOURS),
  );
  return webhook === undefined ? errorAnswer('NOT_FOUND') : dataAnswer({ ...webhookView(webhook), secret });
}

function found(webhook: Webhook | undefined): Answer {
  return webhook === undefined ? errorAnswer('NOT_FOUND') : dataAnswer(webhookView(webhook));
}

const ownWorld = (caller: Call['caller']): number => caller.worldIds[0] as number;

function faultAnswer(fault: EndpointFault): Answer {
  return fault.kind === 'url_invalid'
    ? errorAnswer('WEBHOOK_URL_INVALID', fault.message)
    : validationAnswer(fault.errors);
}
