import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import {
  advanceEventPartitions,
  deleteOldEvents,
  dropEventPartitions,
  EventCuts,
} from '../../src/events/eventPartitions.sql.ts';
import { selectFleetEvents } from '../../src/events/fleetEvents.sql.ts';
import { selectEventFeed, selectPresent } from '../../src/feeds/eventFeed.sql.ts';
import { insertFleetEvents } from '../../src/ingest/storeEvents.sql.ts';
import { DAY_MS } from '../../src/lib/time.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

const RETENTION_DAYS = 80;
const ALL = { type: null, direction: null, imei: null, fromMs: null, toMs: null };

async function open(t: TestContext): Promise<{ sql: Sql }> {
  const { url, drop } = await createDatabase();
  const sql = openSql(url, { maxConnections: 4, name: 'test' });
  t.after(async () => {
    await sql.end();
    await drop();
  });
  await sql`insert into world default values`;
  return { sql };
}

/** Stores events a second apart, and returns their ids. */
function produce(sql: Sql, count: number): Promise<number[]> {
  const events = Array.from({ length: count }, (_, n) => ({
    worldId: 1,
    deviceId: 1,
    imei: '350000000000001',
    type: 'ignition_on' as const,
    message: 'on',
    data: {},
    occurredAtMs: Date.now() - DAY_MS + n * 1000,
  }));
  return sql.begin((tx) => insertFleetEvents(tx, events));
}

async function cutsOf(sql: Sql): Promise<EventCuts> {
  const cuts = new EventCuts();
  await cuts.refresh(sql);
  return cuts;
}

async function partOf(sql: Sql, id: number | undefined): Promise<string> {
  const [row] = await sql<{ part: string }[]>`
    select tableoid::regclass::text as part from fleet_event where id = ${id ?? 0}`;
  return row?.part ?? 'none';
}

/** Makes all partitions look older. */
const age = (sql: Sql, days: number) =>
  sql`
    update event_part set began_at = began_at - make_interval(days => ${days}),
      made_at = made_at - make_interval(days => ${days})`;

describe('partitions of events', () => {
  test('begin when an eighth of the retention is over, and ids rise from one to the next', async (t) => {
    const { sql } = await open(t);
    const [first] = await produce(sql, 1);
    await advanceEventPartitions(sql, RETENTION_DAYS);
    await age(sql, RETENTION_DAYS / 8 - 1);
    await advanceEventPartitions(sql, RETENTION_DAYS);
    const [same] = await produce(sql, 1);
    assert.equal(await partOf(sql, same), await partOf(sql, first));
    await age(sql, 1);
    await advanceEventPartitions(sql, RETENTION_DAYS);
    const [later] = await produce(sql, 1);
    assert.notEqual(await partOf(sql, later), await partOf(sql, first));
    assert.notEqual(await partOf(sql, later), 'fleet_event_rest');
    assert.ok((later ?? 0) > (same ?? 0) && (same ?? 0) > (first ?? 0));
  });

  test('do not begin while there are no events', async (t) => {
    const { sql } = await open(t);
    for (let n = 0; n < 20; n++) {
      await advanceEventPartitions(sql, RETENTION_DAYS);
      await age(sql, RETENTION_DAYS);
    }
    assert.deepEqual(await produce(sql, 1), [1]);
  });

  test('are dropped when all of their events are older than the retention', async (t) => {
    const { sql } = await open(t);
    const old = await produce(sql, 2);
    await advanceEventPartitions(sql, RETENTION_DAYS);
    await age(sql, RETENTION_DAYS);
    await advanceEventPartitions(sql, RETENTION_DAYS);
    const young = await produce(sql, 2);
    const oldestMs = (days: number) => Date.now() + days * DAY_MS - RETENTION_DAYS * DAY_MS;
    assert.deepEqual(await dropEventPartitions(sql, oldestMs(RETENTION_DAYS - 1)), []);
    assert.equal(
      (await selectFleetEvents(sql, [1], ALL, { limit: 9, offset: 0 }, await cutsOf(sql))).length,
      4,
    );
    assert.deepEqual(await dropEventPartitions(sql, oldestMs(RETENTION_DAYS + 1)), ['fleet_event_1']);
    const left = await selectFleetEvents(sql, [1], ALL, { limit: 9, offset: 0 }, await cutsOf(sql));
    assert.deepEqual(left.map(({ id }) => id).sort(), young);
    assert.ok(!left.some(({ id }) => old.includes(id)));
    assert.deepEqual(
      await dropEventPartitions(sql, oldestMs(9 * RETENTION_DAYS)),
      [],
      'the present one stays',
    );
  });

  test('are made behind events that came when there was none for them', async (t) => {
    const { sql } = await open(t);
    await sql`select setval('fleet_event_id_seq', 70_000_000::bigint)`;
    const [beyond] = await produce(sql, 1);
    assert.equal(await partOf(sql, beyond), 'fleet_event_rest');
    await advanceEventPartitions(sql, RETENTION_DAYS);
    await advanceEventPartitions(sql, RETENTION_DAYS);
    assert.equal(
      await partOf(sql, (await produce(sql, 1))[0]),
      'fleet_event_rest',
      'some may not know it yet',
    );
    await age(sql, 1);
    await advanceEventPartitions(sql, RETENTION_DAYS);
    const [next] = await produce(sql, 1);
    assert.match(await partOf(sql, next), /^fleet_event_71\d{6}$/);
    assert.ok((next ?? 0) > (beyond ?? 0));
    assert.equal(
      (await selectFleetEvents(sql, [1], ALL, { limit: 9, offset: 0 }, await cutsOf(sql))).length,
      3,
    );
  });

  test('behind all ranges lose their old events one by one', async (t) => {
    const { sql } = await open(t);
    await sql`select setval('fleet_event_id_seq', 70_000_000::bigint)`;
    const ids = await produce(sql, 3);
    await sql`update fleet_event set recorded_at = now() - interval '90 days' where id = any(${ids.slice(0, 2)}::bigint[])`;
    assert.equal(await deleteOldEvents(sql, Date.now() - RETENTION_DAYS * DAY_MS), 2);
    assert.equal(await deleteOldEvents(sql, Date.now() - RETENTION_DAYS * DAY_MS), 0);
    assert.deepEqual(
      (await selectFleetEvents(sql, [1], ALL, { limit: 9, offset: 0 }, await cutsOf(sql))).map(
        ({ id }) => id,
      ),
      [ids[2]],
    );
  });

  test('lists and the feed go over all of them, in order, while two pods begin new ones', async (t) => {
    const { sql } = await open(t);
    const before = await selectPresent(sql);
    let isOver = false;
    const ids: number[] = [];
    const writing = (async () => {
      while (!isOver) ids.push(...(await produce(sql, 3)));
    })();
    for (let n = 0; n < 6; n++) {
      await age(sql, RETENTION_DAYS);
      await Promise.all([
        advanceEventPartitions(sql, RETENTION_DAYS),
        advanceEventPartitions(sql, RETENTION_DAYS),
      ]);
    }
    isOver = true;
    await writing;
    assert.deepEqual(
      ids,
      ids.toSorted((a, b) => a - b),
    );
    const parts = await sql`select distinct tableoid from fleet_event`;
    assert.ok(parts.length > 3, `${parts.length} partitions`);
    const query = { seen: before, upTo: null, after: null, fromMs: null, type: null, direction: null };
    const feed = await selectEventFeed(sql, [1], { ...query, imei: null, limit: 1_000 }, await cutsOf(sql));
    assert.deepEqual(
      feed.events.map(({ id }) => id),
      ids.slice(0, 1_000),
    );
    for (const page of [
      { limit: 20, offset: 0 },
      { limit: 40, offset: 30 },
      { limit: 200, offset: 10 },
    ]) {
      const rows = await sql<{ id: number }[]>`
        select id from fleet_event order by occurred_at desc, id desc limit ${page.limit} offset ${page.offset}`;
      const found = await selectFleetEvents(sql, [1], ALL, page, await cutsOf(sql));
      assert.deepEqual(
        found.map(({ id }) => id),
        rows.map(({ id }) => id),
      );
    }
  });
});
