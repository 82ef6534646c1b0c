import type { KeyObject } from 'node:crypto';
import type { CidrSet } from './access/cidrSet.ts';
import type { AreaCatalog } from './areas/areaCatalog.memory.ts';
import { areaDevicesRoute } from './areas/areaDevices.routes.ts';
import { areaReadRoutes } from './areas/areaReads.routes.ts';
import { areasContainingRoutes } from './areas/areasContaining.routes.ts';
import { areaWriteRoutes } from './areas/areaWrites.routes.ts';
import { CreateOnce } from './areas/createOnce.ts';
import { areaImportRoute } from './areas/import/areaImport.routes.ts';
import { ImportPlanner } from './areas/import/importPlanner.ts';
import { areaOverlapsRoute } from './areas/overlap/areaOverlaps.routes.ts';
import { Overlaps } from './areas/overlap/overlaps.ts';
import { usageRoute } from './areas/usage.routes.ts';
import { commandsRoute } from './devices/commands.routes.ts';
import { deviceRoutes } from './devices/devices.routes.ts';
import type { Fleet } from './devices/fleet.memory.ts';
import { nearestBatchRoute, nearestRoute } from './devices/nearest.routes.ts';
import { areaEventsRoute, type EventPorts, eventsRoute } from './events/events.routes.ts';
import { areaExplainRoute } from './explain/areaExplain.routes.ts';
import { areaBacktestRoute } from './explain/backtest/areaBacktest.routes.ts';
import { Backtests } from './explain/backtest/backtests.ts';
import { Explanations } from './explain/explanations.ts';
import { deviceChangesRoute, eventFeedRoute } from './feeds/feeds.routes.ts';
import { streamRoute } from './feeds/stream.routes.ts';
import { Presences } from './history/findPresence.ts';
import { historyRoute } from './history/history.routes.ts';
import { HistoryExports, historyExportRoute } from './history/historyExport.routes.ts';
import { HistorySummaries, historySummaryRoute } from './history/historySummary.routes.ts';
import { presenceRoute } from './history/presence.routes.ts';
import { BulkCalls } from './http/bulkCalls.ts';
import type { ChangePorts, Route } from './http/route.ts';
import type { Clock } from './lib/clock.ts';
import { AtOnce, type WorkTurns } from './lib/workTurns.ts';
import type { Readers } from './podReaders.ts';
import type { Teardown } from './teardown.ts';
import { applicationRoutes } from './tenants/application.routes.ts';
import { v1KeyRoutes } from './tenants/keys.routes.ts';
import { type LogInPorts, LoginTurns } from './tenants/logIn.ts';
import { v1SessionRoutes } from './tenants/sessions.routes.ts';
import { webhookDeliveryRoutes } from './webhooks/deliveries.routes.ts';
import { SummaryCache } from './webhooks/deliverySummary.ts';
import { webhookPauseRoutes } from './webhooks/pauses/pauses.routes.ts';
import { webhookRoutes } from './webhooks/webhooks.routes.ts';

export interface RoutePorts extends EventPorts, ChangePorts {
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
  const bulkCalls = new BulkCalls(ports.turns);
  const atOnce = new AtOnce(ports.turns);
  const offered = [
    nearestRoute({ ...ports, atOnce }),
    nearestBatchRoute({ ...ports, bulkCalls }),
    ...areasContainingRoutes({ ...ports, bulkCalls, atOnce }),
    areaDevicesRoute(ports),
    usageRoute(ports),
    areaOverlapsRoute({ ...ports, overlaps, bulkCalls }),
    areaBacktestRoute({ ...ports, backtests: new Backtests(ports) }),
    areaExplainRoute({ ...ports, explanations: new Explanations(ports) }),
    deviceChangesRoute(ports),
    ...deviceRoutes(ports.fleet),
    historyRoute(ports),
    historyExportRoute({ ...ports, exports: new HistoryExports(ports) }),
    historySummaryRoute({ ...ports, summaries: new HistorySummaries(ports) }),
    presenceRoute({ ...ports, presences: new Presences(ports) }),
    commandsRoute(ports),
    eventsRoute(ports),
    eventFeedRoute(ports),
    streamRoute(ports),
    ...areaReadRoutes({ ...ports, atOnce }),
    areaEventsRoute(ports),
    areaImportRoute({ ...ports, planner }),
    ...areaWriteRoutes({ ...ports, createOnce: new CreateOnce() }),
    ...webhookRoutes(ports),
    ...webhookPauseRoutes(ports),
    ...webhookDeliveryRoutes({ ...ports, summaries: new SummaryCache() }),
  ];
  return [
    ...offered,
    ...applicationRoutes(offered),
    ...v1SessionRoutes({ ...ports, turns: new LoginTurns() }),
    ...v1KeyRoutes(ports),
  ];
}
