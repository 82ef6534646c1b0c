import { EXAMPLE_EVENTS } from '../devices/deviceExamples.ts';
import { eventView } from '../devices/deviceViews.ts';
import { IMEI_MESSAGE } from '../devices/imeiParameter.ts';
import { listAnswer } from '../http/answer.ts';
import { OFFSET_MESSAGE } from '../http/listPageAnswer.ts';
import { answered, bodyOf } from '../http/openapi/body.ts';
import { page } from '../http/openapi/commonSchemas.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { ref } from '../http/openapi/schema.ts';
import {
  DEVICE,
  EVENT_TYPE,
  FROM,
  LIST_LIMIT,
  LONG_LIST_OFFSET,
  TO,
  WINDOW_MESSAGE,
} from '../http/parameters.ts';

export const LIST_EVENTS: Operation = {
  id: 'listEvents',
  tag: 'Events',
  summary: 'List fleet events',
  description: 'Of everything that the key can see, newest first.',
  parameters: [EVENT_TYPE, DEVICE, FROM, TO, LIST_LIMIT, LONG_LIST_OFFSET],
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
  errors: [
    ['BAD_REQUEST', EVENT_TYPE.errorMessage],
    ['BAD_REQUEST', WINDOW_MESSAGE],
    ['BAD_REQUEST', OFFSET_MESSAGE],
    ['BAD_REQUEST', IMEI_MESSAGE],
    'IMEI_REQUIRED',
  ],
};
