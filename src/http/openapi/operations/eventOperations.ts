import { listAnswer } from '../../answers/answer.ts';
import { OFFSET_MESSAGE } from '../../answers/listPageAnswer.ts';
import { eventView } from '../../answers/views.ts';
import { IMEI_MESSAGE } from '../../parameters/imei.ts';
import {
  DEVICE,
  EVENT_TYPE,
  FROM,
  LIST_LIMIT,
  LONG_LIST_OFFSET,
  TO,
  WINDOW_MESSAGE,
} from '../../parameters/parameters.ts';
import { answered, bodyOf } from '../examples/body.ts';
import { EXAMPLE_EVENTS } from '../examples/fleet.ts';
import { page } from '../schemas/commonSchemas.ts';
import { ref } from '../schemas/schema.ts';
import type { Operation } from './operation.ts';

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
