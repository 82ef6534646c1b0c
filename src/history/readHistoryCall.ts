import type { Fleet } from '../devices/fleet.memory.ts';
import { imeiError } from '../devices/imeiParameter.ts';
import type { Device } from '../devices/knownDevice.ts';
import { type Answer, errorAnswer } from '../http/answer.ts';
import { WINDOW_MESSAGE } from '../http/parameters.ts';
import type { Query } from '../http/query.ts';
import type { Call } from '../http/route.ts';
import { fail, ok, type Result } from '../lib/result.ts';
import { type HistoryWindow, historyWindowOf } from './historyWindow.ts';

/** What is asked about the history of a device. */
export interface HistoryCall<Own> {
  readonly device: Device;
  readonly window: HistoryWindow;
  /** The parameters of the route itself. */
  readonly own: Own;
}

/** Reads the IMEI and the window, then what `readOwn` reads, then looks for the device. */
export function readHistoryCall<Own>(
  fleet: Fleet,
  { params, query, caller, nowMs }: Call,
  readOwn: (query: Query) => Result<Own, Answer>,
): Result<HistoryCall<Own>, Answer> {
  const imei = params['imei'] ?? '';
  const error = imeiError(imei);
  if (error !== null) return fail(error);
  const window = historyWindowOf(query, caller, nowMs);
  if (window === 'invalid') return fail(errorAnswer('BAD_REQUEST', WINDOW_MESSAGE));
  const own = readOwn(query);
  if (!own.ok) return own;
  const device = fleet.device(caller.worldIds, imei);
  if (device === undefined) return fail(errorAnswer('DEVICE_NOT_FOUND'));
  return ok({ device, window, own: own.value });
}
