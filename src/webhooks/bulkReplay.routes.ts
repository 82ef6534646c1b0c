import { scopeMask } from '../access/scopes.ts';
import { type Answer, dataAnswer, errorAnswer, validationAnswer } from '../http/answer.ts';
import { idOf, malformedId } from '../http/id.ts';
import { jsonBody } from '../http/jsonBody.ts';
import type { ChangePorts } from '../http/ports.ts';
import { type Call, JSON_BODY_BYTES, type Route } from '../http/route.ts';
import { replayDeliveries } from './replayDeliveries.ts';
import { REPLAY_DELIVERIES } from './replayOperation.ts';
import { parseReplayRequest } from './replayRequest.ts';
import type { WebhookWritePorts } from './saveWebhook.ts';

/** A million deliveries take less; a connection without an answer is cut after 150 s. */
const DEADLINE_MS = 140_000;

type BulkReplayPorts = ChangePorts & Pick<WebhookWritePorts, 'wake'>;

/** Sends the failed deliveries of an endpoint again, all at once. */
export function bulkReplayRoute(ports: BulkReplayPorts): Route {
  return {
    method: 'POST',
    path: '/:id/replay',
    scopes: scopeMask('manage_webhooks'),
    versions: ['webhooks'],
    maxBodyBytes: JSON_BODY_BYTES,
    deadlineMs: DEADLINE_MS,
    describe: REPLAY_DELIVERIES,
    handle: (call) => replay(ports, call),
  };
}

async function replay({ writes, wake }: BulkReplayPorts, { caller, params, body }: Call): Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  const json = jsonBody(body);
  if (!json.ok) return json.error;
  const request = parseReplayRequest(json.value);
  if (!request.ok) return validationAnswer(request.error);
  const write = writes(caller.accountId);
  const requeued = await replayDeliveries({ write, wake }, caller, id, request.value);
  return requeued === undefined ? errorAnswer('NOT_FOUND') : { ...dataAnswer({ requeued }), status: 202 };
}
