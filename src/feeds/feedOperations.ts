import {
  EXAMPLE_EVENTS,
  EXAMPLE_NOW_MS,
  EXAMPLE_SILENT_DEVICE,
  EXAMPLE_VAN,
} from '../devices/deviceExamples.ts';
import { changedDeviceView, recordedEventView, removedDeviceView } from '../devices/deviceViews.ts';
import { IMEI_MESSAGE } from '../devices/imeiParameter.ts';
import { answered, dataBody } from '../http/openapi/body.ts';
import type { DescribedError, Operation } from '../http/openapi/operation.ts';
import { ref } from '../http/openapi/schema.ts';
import { DEVICE, EVENT_TYPE } from '../http/parameters.ts';
import {
  CHANGES_LIMIT,
  CURSOR,
  CURSOR_MESSAGE,
  EVENT_FEED_LIMIT,
  FROM_MESSAGE,
  PRODUCED_FROM,
  WAIT,
} from './feedParameters.ts';
import { CHANGED_ITEM, feedPage } from './feedSchemas.ts';

/** As long as one is, and meaning nothing. */
const EXAMPLE_CURSOR = 'q1ZKzi8tykxOVbJSKkktLlHSUSouScxLTixKUbJSMjQwMNBRSixKVbJSKijKz0pNLgEA';

const CURSOR_ERRORS: readonly DescribedError[] = [['BAD_REQUEST', CURSOR_MESSAGE], 'CURSOR_EXPIRED'];

const RECORDED_AT_MS = EXAMPLE_NOW_MS - 7_000;

export const READ_EVENT_FEED: Operation = {
  id: 'readEventFeed',
  tag: 'Events',
  summary: 'Read every event that was produced since the last call',
  description:
    'In the order in which the events became visible, each exactly once along the cursors, however late its point came. Without `cursor` and `from` it begins now, with an empty page. A page of a narrowed feed may be empty while `has_more` is true.',
  parameters: [CURSOR, PRODUCED_FROM, EVENT_TYPE, DEVICE, EVENT_FEED_LIMIT, WAIT],
  answers: [
    answered(200, 'Events.', feedPage(ref('RecordedEvent')), {
      'one of each type': dataBody(
        EXAMPLE_EVENTS.map((event, n) =>
          recordedEventView({ ...event, xid: 1, recordedAtMs: RECORDED_AT_MS + n }),
        ),
        { cursor: EXAMPLE_CURSOR, has_more: false },
      ),
      'nothing new': dataBody([], { cursor: EXAMPLE_CURSOR, has_more: false }),
    }),
  ],
  errors: [
    ...CURSOR_ERRORS,
    ['BAD_REQUEST', FROM_MESSAGE],
    ['BAD_REQUEST', EVENT_TYPE.errorMessage],
    ['BAD_REQUEST', IMEI_MESSAGE],
    'IMEI_REQUIRED',
  ],
};

export const LIST_CHANGES: Operation = {
  id: 'listDeviceChanges',
  tag: 'Devices',
  summary: 'Read every device that has changed since the last call',
  description:
    'Without a cursor all devices; then what has changed since: new positions, edits, and devices that the key does not see any more. A device stands at most once on a page, as it is now; positions in between may be left out. Call again at once while `has_more` is true. A change may come twice and is never left out, whichever pod answers.',
  parameters: [CURSOR, CHANGES_LIMIT, WAIT],
  answers: [
    answered(200, 'Devices that have changed.', feedPage(CHANGED_ITEM), {
      devices: dataBody(
        [
          changedDeviceView(EXAMPLE_VAN, 214, true, EXAMPLE_NOW_MS),
          changedDeviceView(EXAMPLE_SILENT_DEVICE, 0, null, EXAMPLE_NOW_MS),
        ],
        { cursor: EXAMPLE_CURSOR, has_more: false },
      ),
      'one that is not seen any more': dataBody([removedDeviceView('356938035643825')], {
        cursor: EXAMPLE_CURSOR,
        has_more: false,
      }),
      'nothing new': dataBody([], { cursor: EXAMPLE_CURSOR, has_more: false }),
    }),
  ],
  errors: CURSOR_ERRORS,
};
