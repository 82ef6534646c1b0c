import { scopeMask } from '../access/scopes.ts';
import {
  changedDeviceView,
  EXAMPLE_NOW_MS,
  EXAMPLE_SILENT_DEVICE,
  EXAMPLE_VAN,
  removedDeviceView,
} from '../devices/deviceViews.ts';
import type { Answer } from '../http/answer.ts';
import { answered, dataBody } from '../http/openapi/body.ts';
import type { Operation } from '../http/openapi/operation.ts';
import { readLimit } from '../http/parameters/parameter.ts';
import type { Call, Route } from '../http/route.ts';
import type { DeviceFeed } from './deviceFeed.ts';
import { CURSOR_ERRORS, EXAMPLE_CURSOR } from './eventFeed.routes.ts';
import { feedAnswer } from './feedPages.ts';
import { CHANGES_LIMIT, CURSOR, readCursor, readWaitMs, WAIT } from './feedParameters.ts';
import { CHANGED_ITEM, feedPage } from './feedSchemas.ts';

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

export interface DeviceChangesPorts {
  readonly readers: { readonly deviceFeed: DeviceFeed };
}

/** Everything about devices that is new since a cursor: answered from memory. */
export function deviceChangesRoute(ports: DeviceChangesPorts): Route {
  return {
    method: 'GET',
    path: '/devices/changes',
    scopes: scopeMask('read_locations', 'read_devices'),
    versions: ['v3'],
    isPolled: true,
    endsItself: true,
    describe: LIST_CHANGES,
    handle: (call) => changes(ports, call),
  };
}

function changes(
  { readers }: DeviceChangesPorts,
  { caller, query, whenLeft }: Call,
): Answer | Promise<Answer> {
  const page = readers.deviceFeed.next(caller, {
    cursor: readCursor(query),
    limit: readLimit(query, CHANGES_LIMIT),
    waitMs: readWaitMs(query),
    whenLeft,
  });
  return page instanceof Promise ? page.then(feedAnswer) : feedAnswer(page);
}
