import { scopeMask } from '../../../access/scopes.ts';
import { parseReplayRequest } from '../../../delivery/replayRequest.ts';
import { replayDeliveries } from '../../../flows/delivery/replayDeliveries.ts';
import type { WebhookWritePorts } from '../../../flows/delivery/saveWebhook.ts';
import { type Answer, dataAnswer, errorAnswer, validationAnswer } from '../../answers/answer.ts';
import { jsonBody } from '../../bodies/jsonBody.ts';
import { REPLAY_DELIVERIES } from '../../openapi/operations/replayOperation.ts';
import { idOf, malformedId } from '../../parameters/id.ts';
import type { ChangePorts } from '../ports.ts';
import { type Call, JSON_BODY_BYTES, type Route } from '../route.ts';

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
