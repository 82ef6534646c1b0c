import { AREA_DEVICE_SCHEMAS } from './areas/areaDevices.routes.ts';
import { EXTERNAL_ID } from './areas/areaFields.ts';
import { CONTAINING_SCHEMAS } from './areas/areasContaining.routes.ts';
import { AREA_SCHEMAS, EXAMPLE_CIRCLE } from './areas/areaView.ts';
import { AREA_INPUT_SCHEMAS } from './areas/areaWrites.routes.ts';
import { GEOJSON_SCHEMAS } from './areas/geojson.ts';
import { IMPORT_SCHEMAS } from './areas/import/areaImport.routes.ts';
import { OVERLAP_SCHEMAS } from './areas/overlap/areaOverlaps.routes.ts';
import { COMMAND_SCHEMAS } from './devices/commands.routes.ts';
import { DEVICE_SCHEMAS, EXAMPLE_IMEI } from './devices/deviceViews.ts';
import { IMEI } from './devices/imei.ts';
import { NEAREST_BATCH_SCHEMAS } from './devices/nearest.routes.ts';
import { EVENT_SCHEMAS } from './events/eventView.ts';
import { BACKTEST_SCHEMAS } from './explain/backtest/backtestJson.ts';
import { EXPLAIN_SCHEMAS } from './explain/explainJson.ts';
import { FEED_SCHEMAS } from './feeds/feeds.routes.ts';
import { HISTORY_SCHEMAS } from './history/history.routes.ts';
import { SUMMARY_SCHEMAS } from './history/historySummary.routes.ts';
import { PRESENCE_SCHEMAS } from './history/presence.routes.ts';
import { type ApiDocument, apiDocument } from './http/openapi/document.ts';
import { ID, patternOf, text } from './http/openapi/schema.ts';
import type { Route } from './http/route.ts';
import { VERSION } from './version.ts';
import { DELIVERY_BODY_SCHEMAS } from './webhooks/deliveryCallback.ts';
import { DELIVERY_SCHEMAS, EXAMPLE_EXHAUSTED } from './webhooks/deliveryView.ts';
import { DELIVERY_ID } from './webhooks/message.ts';
import { WEBHOOK_SCHEMAS } from './webhooks/webhookView.ts';

const SCHEMAS = {
  ...AREA_INPUT_SCHEMAS,
  ...AREA_SCHEMAS,
  ...AREA_DEVICE_SCHEMAS,
  ...CONTAINING_SCHEMAS,
  ...OVERLAP_SCHEMAS,
  ...NEAREST_BATCH_SCHEMAS,
  ...GEOJSON_SCHEMAS,
  ...IMPORT_SCHEMAS,
  ...DEVICE_SCHEMAS,
  ...COMMAND_SCHEMAS,
  ...EVENT_SCHEMAS,
  ...BACKTEST_SCHEMAS,
  ...EXPLAIN_SCHEMAS,
  ...FEED_SCHEMAS,
  ...HISTORY_SCHEMAS,
  ...SUMMARY_SCHEMAS,
  ...PRESENCE_SCHEMAS,
  ...DELIVERY_BODY_SCHEMAS,
  ...WEBHOOK_SCHEMAS,
  ...DELIVERY_SCHEMAS,
};

const PATH_PARAMETERS = {
  imei: {
    description: 'The IMEI of the device: 14 to 17 digits.',
    schema: text(undefined, { pattern: patternOf(IMEI) }),
    example: EXAMPLE_IMEI,
  },
  id: { description: 'The id.', schema: ID },
  externalId: {
    description:
      "The area's code in your system: 1 to 100 letters, digits and . _ : / @ # - (encode / as %2F and # as %23).",
    schema: text(undefined, { pattern: patternOf(EXTERNAL_ID) }),
    example: EXAMPLE_CIRCLE.definition.externalId,
  },
  deliveryId: {
    description: 'The id of the delivery.',
    schema: text(undefined, { pattern: patternOf(DELIVERY_ID) }),
    example: EXAMPLE_EXHAUSTED.id,
  },
};

/** The description of the API that these routes make, with what the features share in it. */
export function describeApi(routes: readonly Route[]): ApiDocument {
  return apiDocument(routes, { version: VERSION, schemas: SCHEMAS, pathParameters: PATH_PARAMETERS });
}
