import { scopeMask } from '../../../access/scopes.ts';
import type { Clock } from '../../../base/clock.ts';
import type { ChangesAnswer, DeviceFeed } from '../../../flows/readers/deviceFeed.ts';
import { type Answer, errorAnswer } from '../../answers/answer.ts';
import type { ChangedJson } from '../../answers/changedJson.ts';
import { LIST_CHANGES } from '../../openapi/operations/feedOperations.ts';
import { CHANGES_LIMIT, CURSOR_MESSAGE, readCursor, readWaitMs } from '../../parameters/feedParameters.ts';
import { readLimit } from '../../parameters/parameter.ts';
import type { Call, Route } from '../route.ts';

export interface DeviceChangesPorts {
  readonly readers: { readonly deviceFeed: DeviceFeed; readonly changedJson: ChangedJson };
  readonly clock: Clock;
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

function changes(ports: DeviceChangesPorts, { caller, query }: Call): Answer | Promise<Answer> {
  const page = ports.readers.deviceFeed.next(caller, {
    cursor: readCursor(query),
    limit: readLimit(query, CHANGES_LIMIT),
    waitMs: readWaitMs(query),
  });
  return page instanceof Promise ? page.then((page) => answerOf(ports, page)) : answerOf(ports, page);
}

function answerOf({ readers: { changedJson }, clock }: DeviceChangesPorts, page: ChangesAnswer): Answer {
  if (page === 'malformed') return errorAnswer('BAD_REQUEST', CURSOR_MESSAGE);
  if (page === 'expired') return errorAnswer('CURSOR_EXPIRED');
  const meta = `{"cursor":"${page.cursor}","has_more":${page.hasMore}}`;
  return { status: 200, body: changedJson.page(page.items, meta, clock()) };
}
