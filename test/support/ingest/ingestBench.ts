import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { AreaCatalog } from '../../../src/areas/areaCatalog.memory.ts';
import { toShape } from '../../../src/areas/shape.ts';
import { AppliedTransactions } from '../../../src/changelog/appliedTransactions.memory.ts';
import { selectLogEnd } from '../../../src/changelog/database.sql.ts';
import { Fleet } from '../../../src/devices/fleet.memory.ts';
import { StayCounts } from '../../../src/devices/stays/stayCounts.ts';
import type { CommitPorts } from '../../../src/ingest/commitFixes.ts';
import type { FixOutcome } from '../../../src/ingest/fix.ts';
import { Ingest } from '../../../src/ingest/ingest.ts';
import { Subscriptions, Tenancy } from '../../../src/ingest/watchers.memory.ts';
import { WorkTurns } from '../../../src/lib/workTurns.ts';
import { openSql, type Sql } from '../../../src/postgres/sql.ts';
import { localNotifier } from '../../../src/redis/wakeUps.ts';
import { validArea } from '../http/areas.ts';
import { adminOf } from '../postgres/admin.ts';
import { createDatabase } from '../postgres/postgres.ts';
import { fixOf } from './fixOf.ts';
import { shapeWith } from './polygons.ts';

const INSTANCE_ID = '00000000-0000-4000-8000-000000000000';

/** What the ingesting side of one pod is made of, without its listeners. */
export interface IngestSide {
  readonly sql: Sql;
  readonly fleet: Fleet;
  readonly memory: CommitPorts['memory'];
  readonly follower: CommitPorts['follower'];
  readonly server: { readonly eventScope: string };
  readonly traces: null;
  readonly turns: WorkTurns<string | number>;
  readonly onDamaged: CommitPorts['onDamaged'];
  readonly ingest: Ingest;
  /** Everything that was reported to the metrics. */
  readonly outcomes: FixOutcome[];
}

export interface IngestBench {
  readonly imeis: readonly string[];
  readonly sides: readonly IngestSide[];
  readonly databaseUrl: string;
}

/** A database with devices that are called after nothing, and the ingesting sides of some pods on it. */
export async function ingestBench(t: TestContext, { devices = 1, pods = 1 } = {}): Promise<IngestBench> {
  const { url: databaseUrl, drop } = await createDatabase();
  const admin = adminOf(databaseUrl);
  await admin.account('owner@example.com');
  const imeis = Array.from({ length: devices }, (_, n) => String(350_000_000_000_000 + n));
  await admin.importDevices(
    'owner@example.com',
    imeis.map((imei) => ({ imei })),
  );
  const makeSide = async (): Promise<IngestSide> => {
    const sql = openSql(databaseUrl, { maxConnections: 6, name: 'test' });
    const stays = new StayCounts();
    const fleet = new Fleet(stays);
    const memory = {
      fleet,
      areas: new AreaCatalog(stays),
      tenancy: new Tenancy(),
      subscriptions: new Subscriptions(),
    };
    // Goes on to the end of the change log and takes nothing from it: these pods learn nothing by following.
    const applied = new AppliedTransactions(Date.now);
    const catchUp = async () => applied.advance(await sql.begin(selectLogEnd));
    const follower = { applied, catchUp };
    await catchUp();
    const outcomes: FixOutcome[] = [];
    const turns = new WorkTurns<string | number>(3);
    const ports = {
      ...{ sql, memory, follower, turns },
      server: { eventScope: INSTANCE_ID },
      traces: null,
      onDamaged: () => assert.fail(),
    };
    const ingest = new Ingest({
      ...ports,
      clock: Date.now,
      onQueued: () => undefined,
      onOutboxFilled: () => undefined,
      notifier: localNotifier,
      onOutcomes: (some) => void outcomes.push(...some),
    });
    return { ...ports, fleet, ingest, outcomes };
  };
  const sides = await Promise.all(Array.from({ length: pods }, makeSide));
  t.after(async () => {
    for (const { sql } of sides) await sql.end();
    await drop();
  });
  return { imeis, sides, databaseUrl };
}

export const HERE = { lat: 41.9, lng: 12.5 };
export const AWAY = { lat: 10, lng: 10 };
/** The device of a second account. */
export const VICTIM_IMEI = '350000000009999';

/**
 * A pod with devices of an account in whose world so many areas lie, circles around HERE unless `body` says otherwise, and
 * one of another account. All have reported from AWAY a second before `nowMs`. `asked` says how often a
 * shape was asked what it contains.
 */
export async function crowdedBench(
  t: TestContext,
  nowMs: number,
  { devices, areas, body = {} }: { devices: number; areas: number; body?: object },
) {
  const { imeis, sides, databaseUrl } = await ingestBench(t, { devices });
  const [side] = sides as [IngestSide];
  const admin = adminOf(databaseUrl);
  await admin.account('victim@example.com');
  await admin.device('victim@example.com', VICTIM_IMEI);
  await side.ingest.store([...imeis, VICTIM_IMEI].map((imei) => fixOf(imei, nowMs - 1_000, AWAY)));
  const circle = { name: 'Yard', type: 'circle', center: HERE, radius_m: 500 };
  const { definition, measures } = validArea('type' in body ? body : { ...circle, ...body });
  const compiled = toShape(definition.geometry);
  let asked = 0;
  const contains = (lat: number, lng: number) => {
    asked++;
    return compiled.contains(lat, lng);
  };
  const worldId = side.fleet.anyDevice(imeis[0] ?? '')?.fields.worldId ?? 0;
  const stored = { worldId, accountId: 1, definition, measures, createdAtMs: 0, revision: 1 };
  for (let id = 1; id <= areas; id++)
    side.memory.areas.put({ ...stored, id, shape: shapeWith(compiled, { contains }) });
  return { side, imeis, asked: () => asked };
}
