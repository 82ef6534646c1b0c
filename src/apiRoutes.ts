import type { KeyObject } from 'node:crypto';
import type { CidrSet } from './access/cidrSet.ts';
import type { Clock } from './base/clock.ts';
import { AtOnce } from './base/work/atOnce.ts';
import type { WorkTurns } from './base/workTurns.ts';
import type { LogInPorts } from './flows/access/logIn.ts';
import { LoginTurns } from './flows/access/loginTurns.ts';
import { CreateOnce } from './flows/areas/createOnce.ts';
import { ImportPlanner } from './flows/areas/importPlanner.ts';
import { Overlaps } from './flows/areas/overlaps.ts';
import { Backtests } from './flows/backtest/backtests.ts';
import { SummaryCache } from './flows/delivery/summaryCache.ts';
import { Explanations } from './flows/explain/explanations.ts';
import { HistoryExports } from './flows/history/exportHistory.ts';
import { Presences } from './flows/history/findPresence.ts';
import { HistorySummaries } from './flows/history/summarizeHistory.ts';
import { applicationRoutes } from './http/routes/applicationRoutes.ts';
import { areaEventsRoute } from './http/routes/areaEvents.ts';
import { areaImportRoute } from './http/routes/areaImport.ts';
import { areaReadRoutes } from './http/routes/areaReads.ts';
import { areaWriteRoutes } from './http/routes/areaWrites.ts';
import { areaBacktestRoute } from './http/routes/backtest/areaBacktest.ts';
import { areaDevicesRoute } from './http/routes/bulk/areaDevices.ts';
import { areaOverlapsRoute } from './http/routes/bulk/areaOverlaps.ts';
import { areasContainingRoutes } from './http/routes/bulk/areasContaining.ts';
import { BulkCalls } from './http/routes/bulk/bulkCalls.ts';
import { nearestBatchRoute } from './http/routes/bulk/nearestBatch.ts';
import { commandsRoute } from './http/routes/commands.ts';
import { deviceRoutes } from './http/routes/devices.ts';
import { eventsRoute } from './http/routes/events.ts';
import { areaExplainRoute } from './http/routes/explain/areaExplain.ts';
import { bulkReplayRoute } from './http/routes/feeds/bulkReplay.ts';
import { deviceChangesRoute } from './http/routes/feeds/deviceChanges.ts';
import { eventFeedRoute } from './http/routes/feeds/eventFeed.ts';
import { streamRoute } from './http/routes/feeds/stream.ts';
import { historyRoute } from './http/routes/history/history.ts';
import { historyExportRoute } from './http/routes/history/historyExport.ts';
import { historySummaryRoute } from './http/routes/history/historySummary.ts';
import { presenceRoute } from './http/routes/history/presence.ts';
import { nearestRoute } from './http/routes/nearest.ts';
import type { ChangePorts, EventPorts } from './http/routes/ports.ts';
import type { Route } from './http/routes/route.ts';
import { usageRoute } from './http/routes/usage.ts';
import { v1KeyRoutes } from './http/routes/v1Keys.ts';
import { v1SessionRoutes } from './http/routes/v1Session.ts';
import { webhookDeliveryRoutes } from './http/routes/webhookDeliveries.ts';
import { webhookPauseRoutes } from './http/routes/webhookPauses.ts';
import { webhookRoutes } from './http/routes/webhooks.ts';
import type { AreaCatalog } from './memory/areaCatalog.ts';
import type { Fleet } from './memory/fleet.ts';
import type { Readers } from './podReaders.ts';
import type { Teardown } from './teardown.ts';

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
    ...areaWriteRoutes({ ...ports, createOnce: new CreateOnce(ports.writes) }),
    ...webhookRoutes(ports),
    ...webhookPauseRoutes(ports),
    bulkReplayRoute(ports),
    ...webhookDeliveryRoutes({ ...ports, summaries: new SummaryCache() }),
  ];
  return [
    ...offered,
    ...applicationRoutes(offered),
    ...v1SessionRoutes({ ...ports, turns: new LoginTurns() }),
    ...v1KeyRoutes(ports),
  ];
}
