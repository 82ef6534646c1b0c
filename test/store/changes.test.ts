import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import {
  type Change,
  type ChangePage,
  type FeedCursor,
  type PagePlace,
  recordChange,
  recordPositions,
  selectChanges,
} from '../../src/store/changes.ts';
import { openSql, type Sql } from '../../src/store/sql.ts';
import { createDatabase } from '../support/postgres.ts';
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

async function present(): Promise<FeedCursor> {
  const [row] = await sql<{ cursor: FeedCursor }[]>`select pg_current_snapshot()::text as cursor`;
  return row?.cursor ?? '';
}

/** All pages from a cursor on, and the cursor after them. */
async function readFrom(cursor: FeedCursor, beforeNext: () => Promise<unknown> = async () => {}) {
  const changes: Change[] = [];
  let pages = 0;
  let place: PagePlace | null = null;
  for (;;) {
    const page = await selectChanges(sql, cursor, place);
    assert.equal(page.pruned, false);
    changes.push(...page.changes);
    pages++;
    place = page.next;
    if (place === null) return { changes, pages, cursor: page.upTo };
    await beforeNext();
  }
}

const append = (entityIds: readonly number[]) =>
  sql.begin((tx) => recordChange(tx, { kind: 'device', worldId, entityIds }));
const idsOf = (changes: readonly Change[]) => changes.flatMap(({ entityIds }) => entityIds);

describe('reading the feed', () => {
  test('brings nothing where nothing was written', async () => {
    const { changes, pages } = await readFrom(await present());
    assert.deepEqual([changes, pages], [[], 1]);
  });

  test('brings each entity of a write with the version it made', async () => {
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

  test('brings the bytes of moves as they are', async () => {
    const cursor = await present();
    const payload = Buffer.from([0, 1, 2, 255, 0]);
    await sql.begin((tx) => recordPositions(tx, payload));
    const { changes } = await readFrom(cursor);
    assert.deepEqual(
      changes.map((change) => [change.kind, change.payload]),
      [['positions', payload]],
    );
  });

  test('goes page by page, and what is written meanwhile comes next time', async () => {
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

  test('a page of moves ends after a megabyte', async () => {
    const cursor = await present();
    const payloads = Array.from({ length: 9 }, (_, n) => Buffer.alloc(n % 3 === 0 ? 640_000 : 10, n));
    for (const payload of payloads) await sql.begin((tx) => recordPositions(tx, payload));
    const sizes: number[] = [];
    const read: (Buffer | null)[] = [];
    let place: PagePlace | null = null;
    do {
      const page: ChangePage = await selectChanges(sql, cursor, place);
      sizes.push(page.changes.length);
      read.push(...page.changes.map(({ payload }) => payload));
      place = page.next;
    } while (place !== null);
    assert.deepEqual(read, payloads);
    assert.deepEqual(sizes, [4, 5]);
  });

  test('a transaction that stays open neither holds others back nor brings them again', async () => {
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

  test('brings every change of many overlapping transactions exactly once', async () => {
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
