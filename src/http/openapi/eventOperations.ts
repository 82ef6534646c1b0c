import { listAnswer } from '../answer.ts';
import { OFFSET_REFUSAL } from '../deepPage.ts';
import { IMEI_REFUSAL } from '../imei.ts';
import { DEEP_OFFSET, DEVICE, EVENT_TYPE, FROM, LIST_LIMIT, TO, WINDOW_REFUSAL } from '../parameters.ts';
import { eventView } from '../views.ts';
import { page } from './commonSchemas.ts';
import { answered, bodyOf } from './exampleBody.ts';
import { EXAMPLE_EVENTS } from './exampleFleet.ts';
import type { Operation } from './operation.ts';
import { ref } from './schema.ts';

export const LIST_EVENTS: Operation = {
  id: 'listEvents',
  tag: 'Events',
  summary: 'List fleet events',
  description: 'Of everything that the key can see, newest first.',
  parameters: [EVENT_TYPE, DEVICE, FROM, TO, LIST_LIMIT, DEEP_OFFSET],
  answers: [
    answered(200, 'A page of events.', page(ref('FleetEvent')), {
      'one of each type': bodyOf(
        listAnswer(
          EXAMPLE_EVENTS.map((event) => eventView(event, 'v3')),
          { limit: 50, offset: 0 },
        ),
      ),
    }),
  ],
  refusals: [
    ['BAD_REQUEST', EVENT_TYPE.refusal],
    ['BAD_REQUEST', WINDOW_REFUSAL],
    ['BAD_REQUEST', OFFSET_REFUSAL],
    ['BAD_REQUEST', IMEI_REFUSAL],
    'IMEI_REQUIRED',
  ],
};
