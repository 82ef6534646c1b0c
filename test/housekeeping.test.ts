import assert from 'node:assert/strict';
import { randomUUID } from 'node:crypto';
import { after, before, beforeEach, describe, test } from 'node:test';
import { EventCuts } from '../src/events/eventPartitions.sql.ts';
import { tidy } from '../src/housekeeping.ts';
import { DAY_MS, weekStartMs } from '../src/lib/time.ts';
import { DELIVERIES, ensureWeeks, POSITIONS } from '../src/postgres/partitions.ts';
import { openSql, type Sql } from '../src/postgres/sql.ts';
import { createDatabase } from './support/postgres/postgres.ts';

let sql: Sql;
let drop: () => Promise<void>;
before(async () => {
  const database = await createDatabase();
  drop = database.drop;
  sql = openSql(database.url, { maxConnections: 4, name: 'test' });
});
after(async () => {
  await sql.end();
  await drop();
});

let said: string[];
beforeEach(() => {
  said = [];
});
const say = (fields: object, message: string) => void said.push(`${message} ${JSON.stringify(fields)}`);
const round = (nowMs = Date.now(), isStopping?: () => boolean) =>
  tidy(
    {
      sql,
      clock: () => nowMs,
      eventRetentionDays: 730,
      eventCuts: new EventCuts(),
      log: { info: say, warn: say },
    },
    isStopping,
  );

async function partitions(): Promise<number> {
  const rows = await sql`select 1 from pg_inherits where inhparent = 'position'::regclass`;
  return rows.length;
}

describe('once a minute', () => {
  test('changes older than the retention leave the feed, and the horizon rises to them', async () => {
    await sql`insert into change (kind, at) values ('key', now() - interval '1 hour'), ('device', now())`;
    await round();
    assert.deepEqual([...(await sql`select kind from change`)], [{ kind: 'device' }]);
    const [row] = await sql<{ risen: boolean }[]>`
      select h.xid = c.xid as risen from change_horizon h, change c`;
    assert.equal(row?.risen, true, 'both rows are of one transaction');
    assert.deepEqual(said, []);
  });

  test('a pod that stops ends its task and begins no other', async () => {
    await sql`insert into change (kind, at) values ('key', now() - interval '1 hour')`;
    await sql`insert into late_point (device_id, recorded_at, stored_at) values (1, now(), now() - interval '45 hours')`;
    let asked = 0;
    await round(Date.now(), () => asked++ > 0);
    assert.deepEqual([...(await sql`select kind from change where kind = 'key'`)], []);
    assert.equal((await sql`select from late_point`).length, 1);
    await round();
    assert.equal((await sql`select from late_point`).length, 0);
  });

  test('late points that no cursor can have missed are forgotten', async () => {
    await sql`
      insert into late_point (device_id, recorded_at, stored_at)
      select 1, now(), now() - interval '43 hours' union all
      select 2, now() + n * interval '1 ms', now() - interval '45 hours' from generate_series(1, 45000) n`;
    await round();
    assert.deepEqual([...(await sql`select device_id from late_point`)], [{ device_id: 1 }]);
    assert.deepEqual(said, []);
  });

  test('weeks that no plan retains go, and not by the clock of one pod alone', async () => {
    const now = Date.now();
    const weeks = [now, now - 200 * DAY_MS, now - 900 * DAY_MS].map(weekStartMs);
    await ensureWeeks(sql, POSITIONS, weeks);
    await round(now - 400 * DAY_MS);
    assert.equal(await partitions(), 3, 'a clock that is behind keeps more');
    await round(now + 10_000 * DAY_MS);
    assert.equal(await partitions(), 2, 'a clock that is years ahead drops no more than it should');
    assert.equal(said.length, 1);
  });

  test('deliveries go 90 days after they were made, by the week', async () => {
    const weeks = async () =>
      (await sql`select 1 from pg_inherits where inhparent = 'webhook_delivery'::regclass`).length;
    await round();
    const present = await weeks();
    await ensureWeeks(
      sql,
      DELIVERIES,
      [89, 98].map((days) => weekStartMs(Date.now() - days * DAY_MS)),
    );
    await round();
    assert.equal(await weeks(), present + 1);
  });

  test('a plan that was extended meanwhile is heeded', async () => {
    const week = weekStartMs(Date.now() - 900 * DAY_MS);
    await ensureWeeks(sql, POSITIONS, [week]);
    await sql`update plan set history_days = 1000 where name = 'enterprise'`;
    await round();
    assert.equal(await partitions(), 3);
    await sql`update plan set history_days = 730 where name = 'enterprise'`;
    await round();
    assert.equal(await partitions(), 2);
  });

  test('what devices were like before the oldest point that a plan retains is forgotten', async () => {
    await sql`
      insert into device_move (device_id, world_id, until)
      values (1, 1, now() - interval '732 days'), (2, 1, now() - interval '730 days')`;
    await round();
    assert.deepEqual([...(await sql`select device_id from device_move`)], [{ device_id: 2 }]);
  });

  test('pods that were not seen for an hour are forgotten', async () => {
    await sql`
      insert into pod (id, feed_cursor, seen_at) values
        (${randomUUID()}, pg_current_snapshot(), now() - interval '2 hours'),
        (${randomUUID()}, pg_current_snapshot(), now())`;
    await round();
    assert.equal((await sql`select 1 from pod`).length, 1);
  });

  test('a task that fails is reported, and keeps no other from its work', async () => {
    await sql`alter table device_removal rename to device_removal_elsewhere`;
    await sql`insert into pod (id, feed_cursor, seen_at) values (${randomUUID()}, '1:1:', now() - interval '2 hours')`;
    await round();
    await sql`alter table device_removal_elsewhere rename to device_removal`;
    assert.equal(said.length, 1);
    assert.equal((await sql`select 1 from pod`).length, 1);
  });
});
