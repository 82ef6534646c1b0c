import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { CopiedRow, copyRows } from '../../src/postgres/copyRows.ts';
import { openSql, type Sql, type Tx } from '../../src/postgres/sql.ts';
import { isUnavailable, sqlState } from '../../src/postgres/sqlErrors.ts';
import { anyCharacter } from '../support/http/anyCharacter.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { startPostgresProxy } from '../support/postgres/postgresProxy.ts';
import { runs } from '../support/torture.ts';

/** One column of each type that is read. */
interface Thing {
  readonly count: number;
  readonly place: number;
  readonly ratio: number | null;
  readonly name: string | null;
  readonly kind: string;
  readonly tags: readonly string[];
  readonly points: string;
  readonly atMs: number | null;
}

let url: string;
let drop: () => Promise<void>;
let sql: Sql;
before(async () => {
  ({ url, drop } = await createDatabase());
  sql = openSql(url, { maxConnections: 2, name: 'test' });
});
after(async () => {
  await sql.end();
  await drop();
});

const text = fc.string({ unit: anyCharacter, maxLength: 20 }).map((value) => value.replaceAll('\0', ''));
const thing: fc.Arbitrary<Thing> = fc.record(
  {
    count: fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }),
    place: fc.oneof(fc.maxSafeInteger(), fc.constantFrom(0, -1, 2 ** 32, -(2 ** 32), 2 ** 53 - 1)),
    // A parameter of -0 is sent as 0.
    ratio: fc.option(fc.double({ noNaN: true }).map((value) => value + 0)),
    name: fc.option(text),
    kind: fc.constantFrom('a', 'b', 'ä'),
    tags: fc.oneof(fc.array(text, { maxLength: 4 }), fc.constantFrom([], ['x'], ['x', ''], [''])),
    points: fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes).toString('hex')),
    atMs: fc.option(fc.integer({ min: Date.UTC(1900), max: Date.UTC(2200) })),
  },
  { noNullPrototype: true },
);

const readThing = (row: CopiedRow): Thing => ({
  count: row.int4(),
  place: row.int8(),
  ratio: row.float8OrNull(),
  name: row.textOrNull(),
  kind: row.internedText(),
  tags: row.internedTexts(),
  points: Buffer.from(row.bytes()).toString('hex'),
  atMs: row.timestampMsOrNull(),
});

const columns = (on: Tx) =>
  on`select count, place, ratio, name, kind, tags, points, at from thing order by n`;

async function storeThings(on: Tx, things: readonly Thing[]): Promise<void> {
  await on`create temporary table thing (n int, count int, place bigint, ratio float8, name text, kind text,
    tags text[], points bytea, at timestamptz) on commit drop`;
  for (const [n, { count, place, ratio, name, kind, tags, points, atMs }] of things.entries()) {
    // Half a millisecond more than is read: it is cut off, also before 1970.
    await on`insert into thing values (${n}, ${count}, ${place}, ${ratio}, ${name}, ${kind}, ${tags},
      ${Buffer.from(points, 'hex')}, ${atMs === null ? null : new Date(atMs).toISOString()}::timestamptz
        + interval '500 microseconds')`;
  }
}

async function copiedThings(on: Tx): Promise<Thing[]> {
  const things: Thing[] = [];
  await copyRows(on, columns(on), readThing, (rows) => void things.push(...rows));
  return things;
}

describe('rows that are copied', () => {
  test('are the rows that were stored, whatever is in them', async () => {
    await fc.assert(
      fc.asyncProperty(fc.array(thing, { maxLength: 12 }), async (things) => {
        await sql.begin(async (tx) => {
          await storeThings(tx, things);
          assert.deepEqual(await copiedThings(tx), things);
        });
      }),
      { seed: 41, numRuns: runs(20) },
    );
  });

  test('are the same wherever the bytes are cut', async () => {
    const things = fc.sample(thing, { seed: 42, numRuns: 4 });
    const pieces: Buffer[] = [];
    await sql.begin(async (tx) => {
      await storeThings(tx, things);
      await tx.copy(columns(tx), (bytes) => void pieces.push(bytes));
    });
    const whole = Buffer.concat(pieces);
    const read = (cuts: readonly number[]): Thing[] => {
      const row = new CopiedRow();
      const found: Thing[] = [];
      const ends = [...cuts, whole.length];
      for (const [i, end] of ends.entries()) {
        row.feed(whole.subarray(ends[i - 1] ?? 0, end));
        while (row.next()) found.push(readThing(row));
      }
      return found;
    };
    for (let cut = 0; cut <= whole.length; cut++) assert.deepEqual(read([cut]), things, `cut at ${cut}`);
    assert.deepEqual(read(Array.from(whole, (_, at) => at)), things, 'byte by byte');
  });

  test('come in pieces, one after the other, and the next waits for whoever takes his time', async () => {
    let batches = 0;
    let taken = 0;
    let busy = 0;
    await copyRows(
      sql,
      sql`select n from generate_series(1, 100000) n`,
      (row) => row.int4(),
      async (rows) => {
        assert.equal(++busy, 1);
        await new Promise((resolve) => setImmediate(resolve));
        for (const n of rows) assert.equal(n, ++taken);
        batches++;
        busy--;
      },
    );
    assert.equal(taken, 100_000);
    assert.ok(batches > 4, `${batches} batches`);
  });

  test('are read one by one as they are asked for, so that reading them can pause too', async () => {
    let read = 0;
    let asked = 0;
    await copyRows(
      sql,
      sql`select n from generate_series(1, 20000) n`,
      (row) => {
        read++;
        return row.int4();
      },
      async (rows) => {
        for (const _ of rows) {
          assert.equal(read, ++asked);
          if (asked % 1_000 === 0) await new Promise((resolve) => setImmediate(resolve));
        }
      },
    );
    assert.equal(asked, 20_000);
  });

  test('share words and lists that say the same', async () => {
    const seen: { word: string; words: readonly string[] }[] = [];
    await copyRows(
      sql,
      sql`select 'van', '{a,b}'::text[] from generate_series(1, 2)`,
      (row) => ({ word: row.internedText(), words: row.internedTexts() }),
      (rows) => void seen.push(...rows),
    );
    assert.deepEqual(seen, Array(2).fill({ word: 'van', words: ['a', 'b'] }));
    assert.equal(seen[0]?.words, seen[1]?.words);
  });

  test('do not take one word for another, of the same length or with the same hash', async () => {
    // Words with the same FNV-1a hash (http://isthe.com/chongo/tech/comp/fnv/).
    const words = ['van', 'bus', 'costarring', 'liquid', 'declinate', 'macallums', 'van'];
    const rows = await sql.begin((tx) => {
      const seen: { word: string; words: readonly string[] }[] = [];
      const query = tx`
        select w, array[w] from generate_series(1, 2000) n,
          unnest('{van,bus,costarring,liquid,declinate,macallums,van}'::text[]) with ordinality as u (w, i)
        order by n, i`;
      const read = (row: CopiedRow) => ({ word: row.internedText(), words: row.internedTexts() });
      return copyRows(tx, query, read, (all) => void seen.push(...all)).then(() => seen);
    });
    assert.equal(rows.length, 2_000 * words.length);
    for (const [n, { word, words: list }] of rows.entries()) {
      assert.equal(word, words[n % words.length]);
      assert.deepEqual(list, [word]);
    }
  });
});

describe('a copy that cannot be finished', () => {
  const thousand = (on: Tx) => on`select n, repeat('x', 1000) from generate_series(1, 1000) n`;
  const number = (row: CopiedRow) => row.int4();

  test('because its rows were no good says so, and the transaction goes on', async () => {
    const reason = new Error('no');
    for (const refuse of [() => Promise.reject(reason), throwing(reason)]) {
      let calls = 0;
      await sql.begin(async (tx) => {
        const copy = copyRows(tx, thousand(tx), number, () => {
          calls++;
          return refuse();
        });
        await assert.rejects(copy, reason);
        assert.deepEqual([...(await tx`select 1 as one`)], [{ one: 1 }]);
      });
      assert.equal(calls, 1, 'nobody is handed more after he refused');
    }
  });

  test('because a column is read as something else says so', async () => {
    const readings: [query: string, read: (row: CopiedRow) => unknown][] = [
      ['1::int8', (row) => row.int4()],
      ['1::int4', (row) => row.int8()],
      ['null::text', (row) => row.text()],
      ['1::int4', (row) => [row.int4(), row.int4()]],
    ];
    for (const [query, read] of readings) {
      const all = (rows: Iterable<unknown>) => void Array.from(rows);
      await assert.rejects(
        sql.begin((tx) => copyRows(tx, { strings: [`select ${query}`], values: [] }, read, all)),
        /copied column/,
        query,
      );
    }
  });

  test('because the query fails halfway rejects with what Postgres says', async () => {
    const failing = (on: Tx) =>
      copyRows(on, on`select 1 / (500 - n) from generate_series(1, 1000) n`, number, () => undefined);
    for (const copy of [() => failing(sql), () => sql.begin(failing)]) {
      await assert.rejects(copy, (error) => sqlState(error) === '22012');
      assert.deepEqual([...(await sql`select 1 as one`)], [{ one: 1 }]);
    }
  });

  test('because the connection is lost is refused as unavailable, and the pool goes on', async () => {
    for (let round = 0; round < runs(2); round++) {
      const kills: Promise<unknown>[] = [];
      const lost = sql.begin(async (tx) => {
        const [row] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`;
        await tx.copy(
          tx`select repeat('x', 10000) from generate_series(1, 10000) n`,
          () =>
            void kills.push(sql`select pg_terminate_backend(${row?.pid ?? 0}::int)`.catch(() => undefined)),
        );
      });
      await assert.rejects(lost, isUnavailable);
      // The next test replaces the timers: a call that is still running would never clear its own.
      await Promise.all(kills);
      assert.deepEqual([...(await sql`select 1 as one`)], [{ one: 1 }]);
    }
  });

  test('because Postgres falls silent is given up after 40 s', async (t) => {
    const proxy = await startPostgresProxy(t, url);
    t.mock.timers.enable({ apis: ['setTimeout'] });
    const silent = openSql(proxy.url, { maxConnections: 1, name: 'test silent' });
    t.after(() => silent.end());
    await silent`select 1`;
    const held = proxy.hold('before', ({ text }) => text.startsWith('copy'));
    const rejected = assert.rejects(
      silent.copy(thousand(silent), () => undefined),
      isUnavailable,
    );
    await held;
    t.mock.timers.tick(39_999);
    const pending = Symbol('pending');
    const turn = new Promise((resolve) => setImmediate(() => resolve(pending)));
    assert.equal(await Promise.race([rejected, turn]), pending);
    t.mock.timers.tick(2);
    await rejected;
  });

  test('takes no parameters', async () => {
    await assert.rejects(async () => sql.copy(sql`select ${1}`, () => undefined), /parameters/);
  });
});

function throwing(reason: Error): () => never {
  return () => {
    throw reason;
  };
}
