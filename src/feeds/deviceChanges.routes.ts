import { scopeMask } from '../access/scopes.ts';
import type { Answer } from '../http/answer.ts';
import { readLimit } from '../http/parameter.ts';
import type { Call, Route } from '../http/route.ts';
import type { DeviceFeed } from './deviceFeed.ts';
import { LIST_CHANGES } from './feedOperations.ts';
import { feedAnswer } from './feedPages.ts';
import { CHANGES_LIMIT, readCursor, readWaitMs } from './feedParameters.ts';

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
