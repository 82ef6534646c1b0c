import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { LogCursor, LogEnd, Snapshot } from '../../src/changelog/appliedTransactions.memory.ts';
import {
  type Change,
  type ChangePage,
  recordChange,
  recordPositions,
  selectChanges,
  selectUnapplied,
} from '../../src/changelog/changes.sql.ts';
import { selectLogEnd } from '../../src/changelog/database.sql.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { seededRandom } from '../support/seededRandom.ts';

let sql: Sql;
let drop: () => Promise<void>;
let worldId: number;
before(async () => {
  const database = await createDatabase();
  drop = database.drop;
  sql = openSql(database.url, { maxConnections: 8, name: 'test' });
  const [world] = await sql<{ id: number }[]>`insert into world default values returning id`;
  worldId = world?.id ?? 0;
});
after(async () => {
  await sql.end();
  await drop();
});

async function present(): Promise<Snapshot> {
  return (await sql.begin(selectLogEnd)).seen;
}

/** All pages after a snapshot, and the snapshot after them. */
async function readFrom(from: Snapshot, beforeNext: () => Promise<unknown> = async () => {}) {
  const changes: Change[] = [];
  let pages = 0;
  let cursor: LogCursor = { seen: from, open: null };
  for (;;) {
    const page = await selectChanges(sql, cursor);
    assert.equal(page.pruned, false);
    changes.push(...page.changes);
    pages++;
    cursor = page.next;
    if (cursor.open === null) return { changes, pages, cursor: cursor.seen };
    await beforeNext();
  }
}

const append = (entityIds: readonly number[]) =>
  sql.begin((tx) => recordChange(tx, { kind: 'device', worldId, entityIds }));
const idsOf = (changes: readonly Change[]) => changes.flatMap(({ entityIds }) => entityIds);

describe('a read of the feed', () => {
  test('returns nothing when nothing was written', async () => {
    const { changes, pages } = await readFrom(await present());
    assert.deepEqual([changes, pages], [[], 1]);
  });

  test('returns each entity of a write, with the new version of its world', async () => {
    const cursor = await present();
    const version = await append([4, 5]);
    const { changes } = await readFrom(cursor);
    assert.deepEqual(
      changes.map(({ kind, worldId: world, worldVersion, entityIds }) => [
        kind,
        world,
        worldVersion,
        entityIds,
      ]),
      [['device', worldId, version, [4, 5]]],
    );
  });

  test('returns position updates byte for byte', async () => {
    const cursor = await present();
    const payload = Buffer.from([0, 1, 2, 255, 0]);
    await sql.begin((tx) => recordPositions(tx, payload, '[]'));
    const { changes } = await readFrom(cursor);
    assert.deepEqual(
      changes.map((change) => [change.kind, change.payload]),
      [['positions', payload]],
    );
  });

  test('returns position updates without payload that memory holds, and does not count them for the page', async () => {
    const seen = await present();
    const payload = Buffer.alloc(1_000_000, 1);
    const xids: number[] = [];
    for (let n = 0; n < 4; n++) xids.push(await sql.begin((tx) => recordPositions(tx, payload, '[]')));
    const held = xids.slice(0, 3);
    const page = await selectChanges(sql, { seen, open: null }, 'all', held);
    assert.deepEqual(
      page.changes.map(({ kind, xid, payload: sent, stays }) => [kind, xid, sent?.length, stays]),
      xids.map((xid) => ['positions', xid, ...(held.includes(xid) ? [undefined, null] : [1_000_000, '[]'])]),
    );
    assert.equal(page.next.open, null);
  });

  test('goes page by page, and what is written meanwhile comes with the next read', async () => {
    const cursor = await present();
    const ids = Array.from({ length: 25_000 }, (_, n) => n);
    for (const start of [0, 7_000, 14_000])
      await append(ids.slice(start, start === 14_000 ? undefined : start + 7_000));
    let late = 100_000;
    const first = await readFrom(cursor, () => append([++late]));
    assert.deepEqual(idsOf(first.changes), ids);
    assert.equal(first.pages, 3);
    const second = await readFrom(first.cursor);
    assert.deepEqual(idsOf(second.changes), [100_001, 100_002]);
  });

  test('ends a page after a megabyte of position updates', async () => {
    let cursor: LogCursor = { seen: await present(), open: null };
    const payloads = Array.from({ length: 9 }, (_, n) => Buffer.alloc(n % 3 === 0 ? 640_000 : 10, n));
    for (const payload of payloads) await sql.begin((tx) => recordPositions(tx, payload, '[]'));
    const sizes: number[] = [];
    const read: (Buffer | null)[] = [];
    do {
      const page: ChangePage = await selectChanges(sql, cursor);
      sizes.push(page.changes.length);
      read.push(...page.changes.map(({ payload }) => payload));
      cursor = page.next;
    } while (cursor.open !== null);
    assert.deepEqual(read, payloads);
    assert.deepEqual(sizes, [4, 5]);
  });

  test('neither waits for a transaction that stays open nor repeats the others', async () => {
    let cursor = await present();
    const opened = Promise.withResolvers<void>();
    const released = Promise.withResolvers<void>();
    const open = sql.begin(async (tx) => {
      await tx`select pg_current_xact_id()`;
      opened.resolve();
      await released.promise;
      await tx`insert into change (kind, entity_id) values ('device', 1)`;
    });
    await opened.promise;
    for (let n = 100; n < 105; n++) {
      await append([n]);
      const read = await readFrom(cursor);
      assert.deepEqual(idsOf(read.changes), [n], 'each change once');
      cursor = read.cursor;
    }
    released.resolve();
    await open;
    assert.deepEqual(idsOf((await readFrom(cursor)).changes), [1]);
  });

  test('returns every change of many overlapping transactions exactly once', async () => {
    const random = seededRandom(5);
    let cursor = await present();
    const seen: number[] = [];
    const wanted: number[] = [];
    for (let round = 0; round < 10; round++) {
      const writes = Array.from({ length: 6 }, async (_, n) => {
        const id = round * 10 + n + 1000;
        await sql.begin(async (tx) => {
          await tx`select pg_current_xact_id()`;
          await tx`select pg_sleep(${random() * 0.02})`;
          await tx`insert into change (kind, entity_id) values ('device', ${id})`;
          await tx`select pg_sleep(${random() * 0.02})`;
        });
        wanted.push(id);
      });
      let isWriting = true;
      const all = Promise.all(writes).then(() => {
        isWriting = false;
      });
      while (isWriting) {
        const read = await readFrom(cursor);
        seen.push(...idsOf(read.changes));
        cursor = read.cursor;
      }
      await all;
    }
    seen.push(...idsOf((await readFrom(cursor)).changes));
    assert.deepEqual(seen.toSorted(), wanted.toSorted());
  });
});

describe('the worlds whose changes memory has not applied', () => {
  const unappliedSince = (cursor: LogEnd) => sql.begin((tx) => selectUnapplied(tx, cursor));
  const change = (kind: string, world: number, count = 1) => sql`
    insert into change (kind, world_id, world_version, entity_id)
    select ${kind}, ${world}::bigint, 1, n from generate_series(1, ${count}::int) n`;

  test('are those with changes of areas and endpoints, each once, whatever else changed', async () => {
    const cursor = await sql.begin(selectLogEnd);
    assert.deepEqual(await unappliedSince(cursor), new Set());
    for (const [kind, world] of [
      ['area', 1],
      ['webhook', 2],
      ['area', 2],
      ['key', 3],
      ['device', 4],
    ] as const)
      await change(kind, world, 3);
    await change('area', 1);
    assert.deepEqual(await unappliedSince(cursor), new Set([1, 2]));
    assert.deepEqual(await unappliedSince(await sql.begin(selectLogEnd)), new Set());
  });

  test('do not include a change that is applied though its transaction is newer than an open one', async () => {
    const before = await sql.begin(selectLogEnd);
    await sql.begin(async (open) => {
      await open`select pg_current_xact_id()`;
      await change('area', 5);
      const cursor = await sql.begin(selectLogEnd);
      await change('area', 6);
      assert.deepEqual(await unappliedSince(cursor), new Set([6]));
    });
    assert.deepEqual(await unappliedSince(before), new Set([5, 6]));
  });

  test('are any when a membership changed, when too much changed, and when the feed was pruned', async () => {
    const cursor = await sql.begin(selectLogEnd);
    await change('account', 1);
    assert.equal(await unappliedSince(cursor), 'anything');
    const next = await sql.begin(selectLogEnd);
    await sql`insert into change (kind, world_id, world_version, entity_id)
      select 'area', n, 1, 1 from generate_series(1, 1000) n`;
    assert.equal(await unappliedSince(next), 'anything');
    const last = await sql.begin(selectLogEnd);
    await sql`update change_horizon set xid = pg_current_xact_id()`;
    assert.equal(await unappliedSince(last), 'anything');
  });

  test('are unknown when the cursor is from another server', async () => {
    const cursor = await sql.begin(selectLogEnd);
    assert.equal(
      await unappliedSince({ ...cursor, server: { ...cursor.server, history: 'lost/1' } }),
      'history',
    );
  });

  test('are found as quickly for an import of 50 000 areas as for one area', async () => {
    // Statistics from before the import, as they are in a service: no area has changed lately.
    await sql`delete from change`;
    await sql`insert into change (kind, payload) select 'positions', '' from generate_series(1, 1000)`;
    await sql`analyze change`;
    const snapshot = String(await present());
    await change('area', 7, 50_000);
    const blocks = await sql.begin(async (tx) => {
      await tx`select from unapplied_changes(${snapshot}::pg_snapshot, 1000)`; // the first call of a session plans
      const [plan] = await tx<{ 'QUERY PLAN': [{ Plan: { 'Shared Hit Blocks': number } }] }[]>`
        explain (analyze, buffers, format json) select * from unapplied_changes(${snapshot}::pg_snapshot, 1000)`;
      return plan?.['QUERY PLAN'][0].Plan['Shared Hit Blocks'] ?? 0;
    });
    assert.ok(blocks > 0 && blocks < 100, `${blocks} blocks`);
  });
});
