import { formatDuration } from '../../lib/durations.ts';
import type { FieldError } from '../../lib/fieldError.ts';

/** Devices that the points of a batch may ask for together. */
export const BATCH_DEVICES_MAX = 10_000;
/** Areas that are listed for one point. */
export const CONTAINING_MAX = 200;
/** Processor time of one batch: a thousand points among two thousand areas that all contain them take a quarter of it. */
export const BULK_WORK_MS = 8_000;
export const TOO_MUCH_BULK_WORK = {
  field: 'points',
  code: 'LIMIT_REACHED',
  message: `the points together take more than ${formatDuration(BULK_WORK_MS)} of processor time; send them in several calls`,
} as const satisfies FieldError;
