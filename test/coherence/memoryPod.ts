import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import type { Keyring } from '../../src/access/authorizer.ts';
import { Authorizer } from '../../src/access/authorizer.ts';
import type { AreaCatalog } from '../../src/areas/areaCatalog.memory.ts';
import { emptyMemory, type Memory } from '../../src/coherence/applyChanges.ts';
import { type FillPorts, loadFleet } from '../../src/coherence/fillMemory.ts';
import { Follower } from '../../src/coherence/follower.ts';
import type { Occupant } from '../../src/devices/device.ts';
import type { Fleet } from '../../src/devices/fleet.memory.ts';
import { Ingest } from '../../src/ingest/ingest.ts';
import type { Subscriptions, Tenancy } from '../../src/ingest/watchers.memory.ts';
import { type Clock, systemClock } from '../../src/lib/time.ts';
import { WorkTurns } from '../../src/lib/workTurns.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { LocalRateLimiter } from '../../src/redis/rateLimiter.ts';
import { localNotifier } from '../../src/redis/wakeUps.ts';
import type { ShareState } from '../../src/shares/share.ts';
import { WEBHOOK_TYPES } from '../../src/webhooks/delivery.ts';

/** What a pod holds and does besides its listeners. It gets no notifications. */
export interface MemoryPod {
  readonly sql: Sql;
  readonly podId: string;
  readonly fleet: Fleet;
  readonly areas: AreaCatalog;
  readonly keyring: Keyring;
  readonly shares: Keyring<ShareState>;
  readonly tenancy: Tenancy;
  readonly subscriptions: Subscriptions;
  readonly follower: Follower;
  readonly ingest: Ingest;
  readonly authorizer: Authorizer;
  /** What it logged, oldest first. */
  readonly log: string[];
  close(): Promise<void>;
}

/** Opens a pod that has not loaded yet: `follower.start()` does that. */
export function openMemoryPod(
  url: string,
  clock: Clock = systemClock,
  turns: FillPorts['turns'] = new WorkTurns<string>(3),
): MemoryPod {
  const sql = openSql(url, { maxConnections: 8, name: 'test pod' });
  const memory = emptyMemory();
  const { fleet, keyring } = memory;
  const podId = randomUUID();
  const lines: string[] = [];
  const say = (_fields: object, message: string) => void lines.push(message);
  const log = { info: say, warn: say };
  const follower = new Follower({
    memory,
    sql,
    turns,
    clock,
    podId,
    server: { seen: null },
    log,
  });
  return {
    sql,
    podId,
    ...memory,
    follower,
    ingest: new Ingest({
      sql,
      memory,
      follower,
      server: { eventScope: podId },
      clock,
      turns: new WorkTurns<string | number>(3),
      onQueued: () => undefined,
      onOutboxFilled: () => undefined,
      notifier: localNotifier,
      onOutcomes: () => undefined,
      traces: null,
      onDamaged: () => assert.fail(),
    }),
    authorizer: new Authorizer({
      sql,
      fleet,
      keyring,
      rateLimiter: new LocalRateLimiter({ limits: { ipMinute: 0, keyMinute: 0, keyHour: 0 } }),
      follower,
      versions: { restore: async () => true, knowsNewer: async () => false },
      keyUse: { note: () => undefined },
    }),
    log: lines,
    close: async () => {
      await follower.stop();
      await sql.end();
    },
  };
}

/** All that memory holds of these worlds, as plain data to compare. */
export function dump(
  { fleet, areas, tenancy, subscriptions }: Pick<MemoryPod, 'fleet' | 'areas' | 'tenancy' | 'subscriptions'>,
  worldIds: readonly number[],
) {
  return worldIds.map((worldId) => {
    const held = areas.page([worldId], null, 0, Number.MAX_SAFE_INTEGER);
    const watchers = tenancy.watchersOf(worldId);
    const devices = fleet.page([worldId], 0, Number.MAX_SAFE_INTEGER);
    const near = fleet.near([worldId], 12.3, 45.6, devices.length + 1, Number.POSITIVE_INFINITY);
    return {
      worldId,
      version: fleet.worldVersion(worldId),
      devices: devices.map(({ fields, position }) => ({ ...fields, position })),
      near: near?.map(({ device, distanceM }) => [device.fields.imei, distanceM]).sort(),
      areas: held.map(({ shape: _, ...area }) => area),
      occupants: held.map(({ id }) =>
        fleet.occupants(watchers, id, 'all', { offset: 0, limit: 1_000 }).page.map(occupantOf),
      ),
      overlaps: held.map(({ id, measures: { bounds } }) => [id, idsNear(areas, worldId, bounds)]),
      // Where the areas of the tests are made, deleted ones too.
      here: idsNear(areas, worldId, { south: 41.9, west: 12.5 }),
      watchers,
      receivers: WEBHOOK_TYPES.map((type) => subscriptions.receivers([worldId], type).sort((a, b) => a - b)),
      // An organization that its last member has left watches itself alone, shared or not.
      isShared: watchers.length > 1 ? watchers.map((id) => tenancy.isShared(id)) : [],
    };
  });
}

/** Without the device, which refers back to its stays. */
function occupantOf({ device, areaId, insideSinceMs, confirmedAtMs }: Occupant) {
  return { imei: device.fields.imei, areaId, insideSinceMs, confirmedAtMs };
}

/** What the index finds at a position, such as a corner of an area where memory believes it to be. */
function idsNear(areas: AreaCatalog, worldId: number, { south, west }: { south: number; west: number }) {
  const ids = areas.near([worldId], south, west).map(({ id }) => id);
  return ids.sort((a, b) => a - b);
}

/** The same of a memory that is loaded this very moment. */
export async function dumpFresh(sql: Sql, worldIds: readonly number[]) {
  return dump(await freshMemory(sql), worldIds);
}

export async function freshMemory(sql: Sql): Promise<Memory> {
  const memory = emptyMemory();
  await loadFleet(sql, new WorkTurns<string>(3), memory, () => undefined);
  return memory;
}

export async function allWorlds(sql: Sql): Promise<number[]> {
  const rows = await sql<{ id: number }[]>`select id from world order by id`;
  return rows.map((row) => row.id);
}
