import { scopeMask } from '../access/scopes.ts';
import { type Answer, dataAnswer, errorAnswer, validationAnswer } from '../http/answer.ts';
import { idOf, malformedId } from '../http/id.ts';
import { jsonBody } from '../http/jsonBody.ts';
import type { ChangePorts, ReadPorts } from '../http/ports.ts';
import { type Call, type Route, routeFactory } from '../http/route.ts';
import { countLeftOut } from './leftOut.sql.ts';
import { parseResumeRequest } from './replayRequest.ts';
import { resumeWebhook } from './saveWebhook.ts';
import { COUNT_LEFT_OUT, RESUME_WEBHOOK } from './webhookOperations.ts';
import { selectWebhook } from './webhooks.sql.ts';
import { leftOutView, webhookView } from './webhookViews.ts';

type PausePorts = ReadPorts & ChangePorts;

/** Endpoints that the service has paused: what they lack, and the end of the pause. */
export function webhookPauseRoutes(ports: PausePorts): Route[] {
  const route = routeFactory({ scopes: scopeMask('manage_webhooks'), versions: ['webhooks'] });
  return [
    route('GET', '/:id/left-out', COUNT_LEFT_OUT, (call) => leftOut(ports, call)),
    route('POST', '/:id/resume', RESUME_WEBHOOK, (call) => resume(ports, call)),
  ];
}

async function leftOut({ reads }: PausePorts, { caller, params }: Call): Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  const sql = reads(caller.accountId);
  if ((await selectWebhook(sql, caller.accountId, id)) === undefined) return errorAnswer('NOT_FOUND');
  return dataAnswer(leftOutView(await countLeftOut(sql, caller.accountId, id)));
}

async function resume({ writes }: PausePorts, { caller, params, body }: Call): Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  const json = jsonBody(body);
  if (!json.ok) return json.error;
  const request = parseResumeRequest(json.value);
  if (!request.ok) return validationAnswer(request.error);
  const webhook = await resumeWebhook({ write: writes(caller.accountId) }, caller, id, request.value.fromMs);
  return webhook === undefined ? errorAnswer('NOT_FOUND') : dataAnswer(webhookView(webhook));
}
