import { scopeMask } from '../../access/scopes.ts';
import { type Answer, dataAnswer, errorAnswer, validationAnswer } from '../../http/answer.ts';
import type { Operation } from '../../http/openapi/operation.ts';
import { answered, dataBody } from '../../http/openapi/operation.ts';
import { choice, envelope, nullable, ref, shapeOf, text, time } from '../../http/openapi/schema.ts';
import { idOf, malformedId } from '../../http/parameters.ts';
import { jsonBody } from '../../http/requestBody.ts';
import type { ChangePorts, ReadPorts } from '../../http/route.ts';
import { type Call, type Route, routeFactory } from '../../http/route.ts';
import { parseResumeRequest, REPLAY_ERRORS } from '../replayDeliveries.ts';
import { resumeWebhook } from '../saveWebhook.ts';
import { ONE_WEBHOOK } from '../webhooks.routes.ts';
import { selectWebhook } from '../webhooks.sql.ts';
import { EXAMPLE_LEFT_OUT, EXAMPLE_VIEW, leftOutView, webhookView } from '../webhookView.ts';
import { countLeftOut } from './leftOut.sql.ts';

type PausePorts = ReadPorts & ChangePorts;

/** Endpoints that the service has paused: what they lack, and the end of the pause. */
export function webhookPauseRoutes(ports: PausePorts): Route[] {
  const route = routeFactory({ scopes: scopeMask('manage_webhooks'), versions: ['webhooks'] });
  return [
    route('GET', '/:id/left-out', COUNT_LEFT_OUT, (call) => leftOut(ports, call)),
    route('POST', '/:id/resume', RESUME_WEBHOOK, (call) => resume(ports, call)),
  ];
}

const COUNT_LEFT_OUT: Operation = {
  id: 'countLeftOut',
  tag: 'Webhooks',
  summary: 'Count what a paused endpoint lacks',
  description:
    'Events since the service paused the endpoint, and those whose deliveries are still being made after it was resumed. An event of the minute before the pause may be counted although it was delivered.',
  answers: [
    answered(200, 'How many events, by the hour.', envelope(ref('LeftOut')), {
      'two hours': dataBody(leftOutView(EXAMPLE_LEFT_OUT)),
    }),
  ],
  errors: ONE_WEBHOOK,
};

async function leftOut({ reads }: PausePorts, { caller, params }: Call): Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  const sql = reads(caller.accountId);
  if ((await selectWebhook(sql, caller.accountId, id)) === undefined) return errorAnswer('NOT_FOUND');
  return dataAnswer(leftOutView(await countLeftOut(sql, caller.accountId, id)));
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
      resumed: dataBody(EXAMPLE_VIEW),
    }),
  ],
  errors: ONE_WEBHOOK,
};

async function resume({ writes }: PausePorts, { caller, params, body }: Call): Promise<Answer> {
  const id = idOf(params);
  if (id === null) return malformedId();
  const json = jsonBody(body);
  if (!json.ok) return json.error;
  const request = parseResumeRequest(json.value);
  if (!request.ok) return validationAnswer(request.error);
  const webhook = await resumeWebhook(writes(caller.accountId), caller, id, request.value.fromMs);
  return webhook === undefined ? errorAnswer('NOT_FOUND') : dataAnswer(webhookView(webhook));
}
