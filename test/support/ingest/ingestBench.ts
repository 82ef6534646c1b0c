import assert from 'node:assert/strict';
import type { TestContext } from 'node:test';
import { AreaCatalog } from '../../../src/areas/areaCatalog.memory.ts';
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
import { adminOf } from '../postgres/admin.ts';
import { createDatabase } from '../postgres/postgres.ts';

const INSTANCE_ID = '00000000-0000-4000-8000-000000000000';

/** What the ingesting side of one pod is made of, without its listeners. */
export interface IngestSide {
  readonly sql: Sql;
  readonly fleet: Fleet;
  readonly memory: CommitPorts['memory'];
  readonly follower: CommitPorts['follower'];
  readonly server: { readonly eventScope: string };
  readonly turns: WorkTurns<string>;
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
    const turns = new WorkTurns<string>(3);
    const ingest = new Ingest({
      sql,
      memory,
      follower,
      server: { eventScope: INSTANCE_ID },
      clock: Date.now,
      turns,
      onDamaged: () => assert.fail(),
      onQueued: () => undefined,
      onOutboxFilled: () => undefined,
      notifier: localNotifier,
      onOutcomes: (some) => void outcomes.push(...some),
    });
    const shared = {
      sql,
      memory,
      follower,
      server: { eventScope: INSTANCE_ID },
      turns,
      onDamaged: () => assert.fail(),
    };
    return { ...shared, fleet, ingest, outcomes };
  };
  const sides = await Promise.all(Array.from({ length: pods }, makeSide));
  t.after(async () => {
    for (const { sql } of sides) await sql.end();
    await drop();
  });
  return { imeis, sides, databaseUrl };
}
