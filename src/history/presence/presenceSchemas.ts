import { DEVICE_NAMES } from '../../devices/deviceSchemas.ts';
import { integer, number, type Schema, shapeOf, time } from '../../http/openapi/schema.ts';
import type { presenceMeta, presenceView } from '../presenceViews.ts';

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
