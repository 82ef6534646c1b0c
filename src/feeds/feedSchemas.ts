import {
  type changedDeviceView,
  DEVICE_SCHEMAS,
  LOCATION,
  type removedDeviceView,
} from '../devices/deviceViews.ts';
import { EVENT_SCHEMAS } from '../events/eventView.ts';
import { envelope } from '../http/openapi/commonSchemas.ts';
import { list, nullable, number, ref, type Schema, shapeOf, text, time } from '../http/openapi/schema.ts';

type ChangedView = ReturnType<typeof changedDeviceView>;
type ChangedLocation = NonNullable<ChangedView['location']>;

const CHANGED_LOCATION: Schema = shapeOf<ChangedLocation>({
  ...(LOCATION.properties as Record<keyof ChangedLocation, Schema>),
  heading: number('Degrees, clockwise from north.', { minimum: 0, maximum: 360 }),
  altitude_m: number('Metres.'),
});

/** An event as the list shows it, with the time of its production. */
function recorded({ properties = {}, required = [], ...rest }: Schema): Schema {
  return {
    ...rest,
    properties: { ...properties, recorded_at: time('When it was produced, by the clock of the server.') },
    required: [...required, 'recorded_at'],
  };
}

export const FEED_SCHEMAS = {
  ChangedDevice: shapeOf<ChangedView>({
    ...(DEVICE_SCHEMAS.Device.properties as Record<keyof ChangedView, Schema>),
    location: { ...nullable(CHANGED_LOCATION), description: 'null when no position is known.' },
    ignition: {
      ...nullable({ type: 'boolean' }),
      description: 'As the device said last; null when it never did.',
    },
  }),
  RemovedDevice: shapeOf<ReturnType<typeof removedDeviceView>>(
    {
      id: text('Equal to `imei`.'),
      imei: text(),
      removed: { type: 'boolean', enum: [true] },
    },
    { description: 'A device that the key does not see any more.' },
  ),
  RecordedEvent: {
    oneOf: [
      recorded(EVENT_SCHEMAS.GeofenceEvent),
      recorded(EVENT_SCHEMAS.IgnitionEvent),
      recorded(EVENT_SCHEMAS.ParkingEvent),
      recorded(EVENT_SCHEMAS.AlarmEvent),
      recorded(EVENT_SCHEMAS.RfidEvent),
    ],
  },
} as const satisfies Readonly<Record<string, Schema>>;

/** `{ data, meta: { cursor, has_more } }`. */
export function feedPage(items: Schema): Schema {
  return envelope(
    list(items),
    shapeOf<{ cursor: string; has_more: boolean }>({
      cursor: text('Where the next call goes on.', { maxLength: 500 }),
      has_more: { type: 'boolean', description: 'True when the next page is there already.' },
    }),
  );
}

export const CHANGED_ITEM: Schema = { oneOf: [ref('ChangedDevice'), ref('RemovedDevice')] };
