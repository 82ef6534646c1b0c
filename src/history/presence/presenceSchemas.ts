import { statusOf } from '../../devices/deviceJson.ts';
import { DEVICE_NAMES } from '../../devices/deviceViews.ts';
import { integer, number, type Schema, shapeOf, time } from '../../http/openapi/schema.ts';
import { formatIso } from '../../lib/isoTime.ts';
import type { PresentDevice } from './findPresence.ts';

type PresenceView = ReturnType<typeof presenceView>;
type PresenceMeta = ReturnType<typeof presenceMeta>;

export const PRESENCE_SCHEMAS = {
  DevicePresence: shapeOf<PresenceView>({
    device: shapeOf<PresenceView['device']>(DEVICE_NAMES),
    first_at: time('The GPS time of its first point there.'),
    last_at: time('The GPS time of its last point there.'),
    points: integer('How many of its points are there.', { minimum: 1 }),
    seconds: number(
      'How long it was there: the time from point to point inside. More than 10 minutes without a point do not count.',
      { minimum: 0 },
    ),
    closest_m: number(
      'Of a circle: metres from its centre to the closest point. Of an area: metres from its boundary to the point deepest inside, negative.',
    ),
    closest_at: time('The GPS time of that point.'),
  }),
} as const satisfies Readonly<Record<string, Schema>>;

export const PRESENCE_META: Schema = shapeOf<PresenceMeta>({
  query: shapeOf<PresenceMeta['query']>(
    { from: time('Not earlier than the plan retains.'), to: time(), limit: integer() },
    { description: 'The parameters as they were used.' },
  ),
  total: integer('How many devices were there.', { minimum: 0 }),
});

/** A device that was at a place. */
export function presenceView({ device, ...presence }: PresentDevice, nowMs: number) {
  const { imei, name, plate } = device.fields;
  return {
    device: { id: imei, imei, name, plate, status: statusOf(device.position, nowMs) },
    first_at: formatIso(presence.firstMs),
    last_at: formatIso(presence.lastMs),
    points: presence.points,
    seconds: presence.insideMs / 1_000,
    closest_m: presence.closestM,
    closest_at: formatIso(presence.closestMs),
  };
}

/** What was asked for, as it was used, and how many devices were there in all. */
export function presenceMeta(
  { fromMs, toMs, limit }: { readonly fromMs: number; readonly toMs: number; readonly limit: number },
  total: number,
) {
  return { query: { from: formatIso(fromMs), to: formatIso(toMs), limit }, total };
}
