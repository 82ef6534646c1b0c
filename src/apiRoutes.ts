import type { KeyObject } from 'node:crypto';
import type { CidrSet } from './access/ipAddress.ts';
import type { AreaCatalog } from './areas/areaCatalog.memory.ts';
import { EXTERNAL_ID } from './areas/areaFields.ts';
import { AREA_DEVICE_SCHEMAS, areaDevicesRoute, areaReadRoutes } from './areas/areaReads.routes.ts';
import { AREA_SCHEMAS, EXAMPLE_CIRCLE } from './areas/areaSchemas.ts';
import { areasContainingRoutes, CONTAINING_SCHEMAS } from './areas/areasContaining.routes.ts';
import { AREA_INPUT_SCHEMAS, areaWriteRoutes } from './areas/areaWrites.routes.ts';
import { CreateOnce } from './areas/createOnce.sql.ts';
import { GEOJSON_SCHEMAS } from './areas/geojson.ts';
import { areaImportRoute, IMPORT_SCHEMAS } from './areas/import/areaImport.routes.ts';
import { ImportPlanner } from './areas/import/importPlanner.ts';
import { areaOverlapsRoute, OVERLAP_SCHEMAS } from './areas/overlap/areaOverlaps.routes.ts';
import { Overlaps } from './areas/overlap/overlaps.ts';
import { areaTilesRoute } from './areas/tiles/areaTiles.routes.ts';
import { usageRoute } from './areas/usage.routes.ts';
import { COUNT_SCHEMAS, devicesCountRoute } from './areas/within/devicesCount.routes.ts';
import { devicesWithinRoutes, WITHIN_SCHEMAS } from './areas/within/devicesWithin.routes.ts';
import { COMMAND_SCHEMAS, commandsRoute } from './devices/commands.routes.ts';
import { IMEI } from './devices/device.ts';
import { DEVICE_SCHEMAS, EXAMPLE_IMEI } from './devices/deviceSchemas.ts';
import { deviceRoutes } from './devices/devices.routes.ts';
import type { Fleet } from './devices/fleet.memory.ts';
import { nearestRoute } from './devices/nearest.routes.ts';
import { NEAREST_BATCH_SCHEMAS, nearestBatchRoute } from './devices/nearestBatch.routes.ts';
import { deviceTilesRoute } from './devices/tiles/deviceTiles.routes.ts';
import { areaEventsRoute, type EventPorts, eventsRoute } from './events/events.routes.ts';
import { EVENT_SCHEMAS } from './events/eventView.ts';
import { areaExplainRoute } from './explain/areaExplain.routes.ts';
import { areaBacktestRoute } from './explain/backtest/areaBacktest.routes.ts';
import { BACKTEST_SCHEMAS } from './explain/backtest/backtestJson.ts';
import { Backtests } from './explain/backtest/backtests.ts';
import { EXPLAIN_SCHEMAS } from './explain/explainJson.ts';
import { Explanations } from './explain/explanations.ts';
import { Cursors } from './feeds/cursors.ts';
import { DeviceFeed } from './feeds/deviceFeed.ts';
import { EventFeed } from './feeds/eventFeed.ts';
import { deviceChangesRoute, eventFeedRoute, FEED_SCHEMAS } from './feeds/feeds.routes.ts';
import { LongPolls } from './feeds/longPolls.ts';
import { ItemTexts, UnreadAnswers } from './feeds/pages.ts';
import { PointFeed } from './feeds/pointFeed.ts';
import { EventReader } from './feeds/readEvents.ts';
import { streamRoute } from './feeds/streams/stream.routes.ts';
import { Streams } from './feeds/streams/streams.ts';
import { newRunningExports } from './history/exportFile.ts';
import { fleetExportRoute } from './history/fleet/fleetExport.routes.ts';
import { FLEET_SUMMARY_SCHEMAS, fleetSummaryRoute } from './history/fleet/fleetSummary.routes.ts';
import { FleetSums } from './history/fleet/fleetSums.ts';
import { HISTORY_SCHEMAS, historyRoute } from './history/history.routes.ts';
import { historyExportRoute } from './history/historyExport.routes.ts';
import { historySummaryRoute } from './history/historySummary.routes.ts';
import { PRESENCE_SCHEMAS, presenceRoute } from './history/presence.routes.ts';
import { SUMMARY_SCHEMAS } from './history/summary/summaryView.ts';
import { trackTileRoutes } from './history/tracks/tracks.routes.ts';
import { BulkCalls } from './http/bulkCalls.ts';
import { type ApiDocument, apiDocument } from './http/openapi/document.ts';
import { ID, text } from './http/openapi/schema.ts';
import type { ChangePorts, ReadPorts, Route } from './http/route.ts';
import { TILE_PARAMETERS } from './http/tile.ts';
import type { Clock } from './lib/time.ts';
import { AtOnce, type WorkTurns } from './lib/workTurns.ts';
import type { Pod, Teardown } from './pod.ts';
import { SharedFleet } from './shares/sharedFleet.ts';
import { ShareStreams } from './shares/shareStreams.ts';
import { SHARE_SCHEMAS, shareRoutes } from './shares/shares.routes.ts';
import { applicationRoutes } from './tenants/application.routes.ts';
import { v1KeyRoutes } from './tenants/keys.routes.ts';
import { type LogInPorts, LoginTurns } from './tenants/logIn.ts';
import { v1SessionRoutes } from './tenants/sessions.routes.ts';
import { VERSION } from './version.ts';
import { webhookDeliveryRoutes } from './webhooks/deliveries.routes.ts';
import { DELIVERY_ID } from './webhooks/delivery.ts';
import { SummaryCache } from './webhooks/deliverySummary.ts';
import { DELIVERY_BODY_SCHEMAS, DELIVERY_SCHEMAS, EXAMPLE_EXHAUSTED } from './webhooks/deliveryView.ts';
import { WEBHOOK_SCHEMAS } from './webhooks/endpoint.ts';
import { webhookRoutes } from './webhooks/webhooks.routes.ts';

export interface RoutePorts extends EventPorts, ChangePorts {
  /** Reads that a replica may answer, as the primary would. */
  readonly heavyReads: ReadPorts['reads'];
  readonly logins: LogInPorts['logins'];
  readonly fleet: Fleet;
  readonly areas: AreaCatalog;
  /** By account. */
  readonly turns: WorkTurns<string | number>;
  /** Takes the ids of endpoints that have deliveries to send. */
  readonly wake: (webhookIds: readonly number[]) => void;
  readonly secretsKey: KeyObject;
  readonly allowNets: CidrSet;
  readonly readers: Readers;
  readonly clock: Clock;
  readonly teardown: Teardown;
}

/** Every route of the public API, whatever its prefix. */
export function apiRoutes({ teardown, ...ports }: RoutePorts): Route[] {
  const planner = new ImportPlanner(ports.turns);
  teardown.add(() => planner.close());
  const overlaps = new Overlaps();
  teardown.add(() => overlaps.close());
  const sums = new FleetSums();
  teardown.add(() => sums.close());
  const bulkCalls = new BulkCalls(ports.turns);
  const atOnce = new AtOnce(ports.turns);
  const exports = newRunningExports();
  const heavy = { ...ports, reads: ports.heavyReads };
  const offered = [
    nearestRoute({ ...ports, atOnce }),
    nearestBatchRoute({ ...ports, bulkCalls }),
    ...areasContainingRoutes({ ...ports, bulkCalls, atOnce }),
    areaDevicesRoute({ ...ports, bulkCalls, atOnce }),
    ...devicesWithinRoutes({ ...ports, bulkCalls, atOnce }),
    devicesCountRoute({ ...ports, bulkCalls, atOnce }),
    usageRoute(ports),
    areaOverlapsRoute({ ...ports, overlaps, bulkCalls }),
    areaTilesRoute({ ...ports, bulkCalls, atOnce }),
    deviceTilesRoute({ ...ports, bulkCalls, atOnce }),
    areaBacktestRoute({ ...ports, backtests: new Backtests(heavy) }),
    areaExplainRoute({ ...ports, explanations: new Explanations(ports) }),
    deviceChangesRoute(ports),
    ...deviceRoutes({ ...ports, bulkCalls, atOnce }),
    historyRoute(ports),
    historyExportRoute({ ...heavy, exports }),
    fleetExportRoute({ ...heavy, exports }),
    historySummaryRoute(heavy),
    fleetSummaryRoute({ ...heavy, sums }),
    presenceRoute(heavy),
    ...trackTileRoutes({ ...ports, bulkCalls }),
    commandsRoute(ports),
    eventsRoute(ports),
    eventFeedRoute(ports),
    streamRoute(ports),
    ...areaReadRoutes({ ...ports, atOnce }),
    areaEventsRoute(ports),
    areaImportRoute({ ...ports, planner }),
    ...areaWriteRoutes({ ...ports, createOnce: new CreateOnce() }),
    ...webhookRoutes(ports),
    ...webhookDeliveryRoutes({ ...ports, summaries: new SummaryCache() }),
    ...shareRoutes({ ...ports, ...ports.readers }),
  ];
  return [
    ...offered,
    ...applicationRoutes(offered),
    ...v1SessionRoutes({ ...ports, turns: new LoginTurns() }),
    ...v1KeyRoutes(ports),
  ];
}

const SCHEMAS = {
  ...AREA_INPUT_SCHEMAS,
  ...AREA_SCHEMAS,
  ...AREA_DEVICE_SCHEMAS,
  ...CONTAINING_SCHEMAS,
  ...OVERLAP_SCHEMAS,
  ...WITHIN_SCHEMAS,
  ...COUNT_SCHEMAS,
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
  ...FLEET_SUMMARY_SCHEMAS,
  ...PRESENCE_SCHEMAS,
  ...DELIVERY_BODY_SCHEMAS,
  ...WEBHOOK_SCHEMAS,
  ...DELIVERY_SCHEMAS,
  ...SHARE_SCHEMAS,
};

const PATH_PARAMETERS = {
  imei: {
    description: 'The IMEI of the device: 14 to 17 digits.',
    schema: text(undefined, { pattern: IMEI.source }),
    example: EXAMPLE_IMEI,
  },
  id: { description: 'The id.', schema: ID },
  externalId: {
    description:
      "The area's code in your system: 1 to 100 letters, digits and . _ : / @ # - (encode / as %2F and # as %23).",
    schema: text(undefined, { pattern: EXTERNAL_ID.source }),
    example: EXAMPLE_CIRCLE.definition.externalId,
  },
  ...TILE_PARAMETERS,
  token: {
    description: 'From the link.',
    schema: text(),
    example: 'q1ZKzi8tykxOVbJSKkktLlHSUUosScxLTixKUbI',
  },
  deliveryId: {
    description: 'The id of the delivery.',
    schema: text(undefined, { pattern: DELIVERY_ID.source }),
    example: EXAMPLE_EXHAUSTED.id,
  },
};

/** The description of the API that these routes make, with what the features share in it. */
export function describeApi(routes: readonly Route[]): ApiDocument {
  return apiDocument(routes, { version: VERSION, schemas: SCHEMAS, pathParameters: PATH_PARAMETERS });
}

/** The feeds and streams of clients that follow the fleet with a cursor. */
export interface Readers {
  readonly deviceFeed: DeviceFeed;
  readonly eventFeed: EventFeed;
  readonly streams: Streams;
  readonly pointFeed: PointFeed;
  readonly shared: SharedFleet;
  readonly shareStreams: ShareStreams;
  /** Ends all waiting: the pod is about to stop. */
  close(): void;
}

export function createReaders(pod: Pod): Readers {
  const { connections, memory, follower, secretsKey, turns, clock, log } = pod;
  const { fleet, keyring, shares } = memory;
  const { applied } = follower;
  const cursors = new Cursors(secretsKey, applied, clock);
  const unread = new UnreadAnswers(turns);
  const polls = new LongPolls({ watch: fleet.watch, keyring, applied, unread, turns, clock });
  const reader = new EventReader({ reads: connections.reads.of, cuts: pod.eventCuts, cursors, follower });
  const texts = new ItemTexts();
  const shared = { fleet, follower, cursors, polls, unread, reader, texts, turns, clock };
  const streams = new Streams({ ...shared, keyring, log });
  const sharing = {
    fleet,
    shares,
    service: connections.service,
    reads: connections.reads.of,
    turns,
    follower,
    clock,
  };
  const sharedFleet = new SharedFleet(sharing);
  const shareStreams = new ShareStreams({ shares, turns, clock, shared: sharedFleet, log });
  return {
    shared: sharedFleet,
    shareStreams,
    deviceFeed: new DeviceFeed(shared),
    eventFeed: new EventFeed(shared),
    streams,
    pointFeed: new PointFeed({ ...shared, reads: connections.reads.of, writes: connections.writes.of }),
    close: () => {
      polls.close();
      streams.close();
      shareStreams.close();
    },
  };
}
