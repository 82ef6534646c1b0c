import assert from 'node:assert/strict';
import { describe, type TestContext, test } from 'node:test';
import { selectServerStarts } from '../../src/changelog/database.sql.ts';
import { type SeenServer, ServerKnowledge } from '../../src/postgres/serverEntry.ts';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { startOwnPostgres } from '../support/postgres/ownPostgres.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { waitFor } from '../support/waitFor.ts';

const PODS = 8;

interface Start {
  readonly ordinal: number;
  readonly renewed: boolean;
  readonly renewals: number;
  readonly event_scope: string;
}

/** A database, what a pod has seen of it that is up to date, and what is written down of its starts. */
async function startSetup(t: TestContext) {
  const { url } = await createDatabase(t);
  const open = (server?: ServerKnowledge): Sql => {
    const sql = openSql(url, { maxConnections: 2, name: 'test entry', ...(server && { server }) });
    t.after(() => sql.end());
    return sql;
  };
  const sql = open();
  return {
    url,
    open,
    sql,
    seen: () => seenOn(sql),
    /** As if the server had been stopped and started. */
    restart: async () => {
      await sql`checkpoint`;
      await sql`delete from server_session`;
    },
    starts: async (): Promise<readonly Start[]> =>
      sql<Start[]>`select ordinal, renewed, renewals, event_scope from server_start order by ordinal`,
    /** The next value of every sequence, by its name. */
    nextIds: async (): Promise<Map<string, number>> => {
      const rows = await sql<{ name: string; next: number }[]>`
        select sequencename as name, coalesce(last_value + 1, start_value) as next from pg_sequences
        where schemaname = 'public'`;
      return new Map(rows.map(({ name, next }) => [name, next]));
    },
  };
}

/** What a pod sees that looks now. */
async function seenOn(sql: Sql): Promise<SeenServer> {
  const [row] = await sql<{ start: number; flushed: number; xmax: number }[]>`
    select server_mark() as start, flushed_bytes() as flushed,
      pg_snapshot_xmax(pg_current_snapshot())::text::float8 as xmax`;
  const { start = 0, flushed = 0, xmax = 0 } = row ?? {};
  return { start, flushedBytes: flushed, xmax };
}

function knowing(seen: SeenServer | null): ServerKnowledge {
  const server = new ServerKnowledge();
  server.seen = seen;
  return server;
}

const FAR_BYTES = 2 ** 40;
const PAGE_BYTES = 8_192;
const ROLLED_BACK = 20;
const TRIES_MAX = 20;
/** How the server ends, and whether its log is on disk up to the end of a page, in the middle of a record. */
const CRASHES = [
  { harm: 'its processes are killed', isInRecord: true },
  { harm: 'it is killed', isInRecord: true },
  { harm: 'it is killed', isInRecord: false },
  { harm: 'it is killed', isInRecord: true },
] as const;

describe('the first connection to a start of the server', () => {
  test('writes it down once, and changes nothing when everything is there that pods have seen', async (t) => {
    const { open, seen, restart, starts, nextIds } = await startSetup(t);
    const before = await seen();
    const ids = await nextIds();
    await restart();
    const pods = Array.from({ length: PODS }, () => knowing(before));
    await Promise.all(pods.map((server) => open(server)`select 1`));
    const [first, second, ...others] = await starts();
    assert.ok(first && second);
    assert.deepEqual([second.renewed, second.event_scope, others], [false, first.event_scope, []]);
    assert.deepEqual(await nextIds(), ids);
    assert.notEqual((await seen()).start, before.start);
  });

  for (const [what, more] of [
    ['of the log', { flushedBytes: FAR_BYTES }],
    ['of transactions', { xmax: FAR_BYTES }],
    ['under a start that is not there', { start: 7 }],
  ] as const) {
    test(`moves all ids ahead once, before any of many pods writes, when they have seen more ${what}`, async (t) => {
      const { open, seen, restart, starts, nextIds } = await startSetup(t);
      const before = await seen();
      const ids = await nextIds();
      await restart();
      const pods = Array.from({ length: PODS }, () => knowing({ ...before, ...more }));
      const written = await Promise.all(
        pods.map(async (server) => {
          const [row] = await open(server)<{ id: number }[]>`select nextval('fleet_event_id_seq') as id`;
          return row?.id ?? 0;
        }),
      );
      for (const id of written) assert.ok(id >= (ids.get('fleet_event_id_seq') ?? 0) + 2 ** 32, String(id));
      assert.equal(new Set(written).size, PODS);
      const [first, second, ...others] = await starts();
      assert.ok(first && second);
      assert.deepEqual([second.renewed, second.renewals - first.renewals, others], [true, 1, []]);
      assert.deepEqual(new Set(pods.map(({ eventScope }) => eventScope)), new Set([second.event_scope]));
      assert.notEqual(second.event_scope, first.event_scope);
      for (const [name, next] of await nextIds())
        assert.ok(next >= (ids.get(name) ?? 0) + 2 ** 20, `${name} was moved ahead`);
    });
  }

  test('who has seen less comes first: ids are moved when the one comes who has seen more', async (t) => {
    const { open, seen, restart, starts, nextIds } = await startSetup(t);
    const before = await seen();
    await restart();
    await open(knowing(before))`select 1`;
    const ids = await nextIds();
    const ahead = knowing({ ...before, flushedBytes: FAR_BYTES });
    await open(ahead)`select 1`;
    const last = (await starts()).at(-1);
    assert.deepEqual([last?.ordinal, last?.renewed, last?.event_scope], [2, true, ahead.eventScope]);
    for (const [name, next] of await nextIds()) assert.ok(next > (ids.get(name) ?? 0), name);
    await open(knowing({ ...before, flushedBytes: FAR_BYTES }))`select 1`;
    assert.equal((await starts()).at(-1)?.renewals, last?.renewals, 'once');
  });

  test('whose process ends in the middle leaves nothing, and the next one does it', async (t) => {
    const { open, sql, seen, restart, starts } = await startSetup(t);
    const before = await seen();
    await restart();
    const undone = new Error('the process ends');
    await assert.rejects(
      sql.begin(async (tx) => {
        await tx`select enter_server(${before.start}, ${FAR_BYTES}, 0)`;
        throw undone;
      }),
      undone,
    );
    assert.equal((await starts()).length, 1);
    await open(knowing({ ...before, flushedBytes: FAR_BYTES }))`select 1`;
    assert.deepEqual(
      (await starts()).map(({ renewed }) => renewed),
      [false, true],
    );
  });

  test('is taken also where the server is read-only by default, so that it can be read', async (t) => {
    const { open, sql, seen, restart, starts } = await startSetup(t);
    const before = await seen();
    await restart();
    const [row] = await sql<{ name: string }[]>`select current_database() as name`;
    await sql.unsafe(`alter database ${row?.name} set default_transaction_read_only = on`);
    const server = knowing(before);
    const pod = open(server);
    await pod`select 1`;
    assert.equal((await starts()).length, 2);
    await assert.rejects(pod`delete from server_session`, { code: '25006' });
  });

  test('after a crash finds everything there that a pod has seen, and no transaction id is given again', async (t) => {
    const postgres = await startOwnPostgres(t);
    const open = (server?: ServerKnowledge): Sql => {
      const opened = openSql(postgres.url, {
        maxConnections: 4,
        name: 'test entry',
        ...(server && { server }),
      });
      t.after(() => opened.end());
      return opened;
    };
    await open()`create table filler (text text)`;
    const pods: SeenServer[] = [];
    for (const { harm, isInRecord } of CRASHES) {
      const sql = open();
      for (let n = 0; n < ROLLED_BACK; n++)
        await sql
          .begin(async (tx) => tx`select pg_current_xact_id()`.then(() => Promise.reject(new Undone())))
          .catch(ignoreUndone);
      let writing: Promise<unknown> = Promise.resolve();
      const isOver = Promise.withResolvers<void>();
      if (isInRecord) {
        const insert = sql.begin(async (tx) => {
          await tx`insert into filler select string_agg(md5(random()::text), '') from generate_series(1, 20000) n group by n % 200`;
          await isOver.promise;
        });
        writing = insert.catch(() => undefined);
      }
      let seen = await seenOn(sql);
      await waitFor(async () => {
        if (!isInRecord) await sql`insert into filler values ('')`;
        seen = await seenOn(sql);
        return (seen.flushedBytes % PAGE_BYTES === 0) === isInRecord;
      });
      pods.push(seen);

      if (harm === 'its processes are killed') await postgres.killSessions();
      else {
        await postgres.kill();
        await postgres.start();
      }
      isOver.resolve();
      await writing;
      const pod = open(knowing(seen));
      // Postgres may go on for a moment before it notices that its processes are dead.
      await waitFor(() =>
        seenOn(pod).then(
          ({ start }) => start !== seen.start,
          () => false,
        ),
      );
      const [row] = await pod<{ xid: number }[]>`select pg_current_xact_id()::text::float8 as xid`;
      assert.ok((row?.xid ?? 0) >= seen.xmax, `${row?.xid} is given after ${seen.xmax} was seen`);
      const now = await seenOn(pod);
      const starts = await selectServerStarts(pod);
      for (const { start, flushedBytes: walBytes, xmax } of pods) {
        const state = { lineage: '', start, walBytes, xmax };
        assert.equal(starts.holdAll({ ...state, start: now.start }, state), true, harm);
      }
    }
  });

  test('after a crash in the middle of a record has the log up to the page that was not on disk, and no further', async (t) => {
    const postgres = await startOwnPostgres(t);
    // Postgres may write something more at any time, and what is written to disk with it ends the record.
    for (let tries = 1; ; tries++) {
      const before = openSql(postgres.url, { maxConnections: 1, name: 'test before' });
      await before`select pg_logical_emit_message(false, 'test', repeat('x', ${10 * PAGE_BYTES}))`;
      let log = await logOf(before);
      await waitFor(async () => {
        log = await logOf(before);
        return log.flushed === log.written - (log.written % PAGE_BYTES);
      });
      await postgres.kill();
      await before.end();
      await postgres.start();
      const after = openSql(postgres.url, { maxConnections: 1, name: 'test after' });
      const { start, replayed } = await logOf(after);
      await after.end();
      if (start === log.flushed && (replayed ?? 0) < start) break;
      assert.ok(tries < TRIES_MAX, `${start} after ${log.flushed} was on disk, and ${replayed} was replayed`);
    }
  });
});

/** Positions in the log, in bytes. */
async function logOf(sql: Sql): Promise<Log> {
  const [row] = await sql<Log[]>`
    select flushed_bytes() as flushed, start_bytes() as start,
      pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')::float8 as written,
      pg_wal_lsn_diff(pg_last_wal_replay_lsn(), '0/0')::float8 as replayed`;
  return row ?? { flushed: 0, start: 0, written: 0, replayed: 0 };
}

interface Log {
  readonly flushed: number;
  readonly start: number;
  readonly written: number;
  readonly replayed: number | null;
}

class Undone extends Error {}

function ignoreUndone(error: unknown): void {
  if (!(error instanceof Undone)) throw error;
}
