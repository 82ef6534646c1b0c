import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import fc from 'fast-check';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import { assignments, compileSql, identifier, insertRows, type SqlText } from '../../src/postgres/sqlText.ts';
import { anyCharacter } from '../support/http/anyCharacter.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

const sqlText = (strings: TemplateStringsArray, ...values: readonly unknown[]): SqlText => ({
  strings,
  values,
});

describe('a statement becomes text and numbered parameters', () => {
  const rows: readonly (readonly [
    title: string,
    piece: SqlText,
    text: string,
    values: readonly unknown[],
  ])[] = [
    ['without values', sqlText`select 1`, 'select 1', []],
    ['empty', sqlText``, '', []],
    ['one value', sqlText`select ${1}`, 'select $1', [1]],
    ['values side by side', sqlText`${1}${2}`, '$1$2', [1, 2]],
    ['undefined and null are values', sqlText`a ${undefined} ${null}`, 'a $1 $2', [undefined, null]],
    ['text is never SQL', sqlText`select ${"'; drop table x --"}`, 'select $1', ["'; drop table x --"]],
    [
      'a piece in a piece',
      sqlText`a ${1} b ${sqlText`(${2}, ${3})`} c ${4}`,
      'a $1 b ($2, $3) c $4',
      [1, 2, 3, 4],
    ],
    ['pieces three deep', sqlText`${sqlText`${sqlText`x${1}`}y${2}`}z${3}`, 'x$1y$2z$3', [1, 2, 3]],
    ['a name', sqlText`select ${identifier('a')} from ${identifier('b')}`, 'select "a" from "b"', []],
    ['a name with quotes', sqlText`${identifier('a"; drop table x --')}`, '"a""; drop table x --"', []],
    [
      'more than nine',
      sqlText`${1}${2}${3}${4}${5}${6}${7}${8}${9}${10}${11}`,
      '$1$2$3$4$5$6$7$8$9$10$11',
      [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
    ],
    ['dollars in the text stay', sqlText`$$ $1 ${'$2'}`, '$$ $1 $1', ['$2']],
  ];
  for (const [title, piece, text, values] of rows) {
    test(title, () => assert.deepEqual(compileSql(piece), { text, values }));
  }
});

describe('rows and assignments', () => {
  test('an insert names its columns once and numbers its values row by row', () => {
    assert.deepEqual(
      compileSql(
        insertRows([
          { a: 1, b: 'x' },
          { a: 2, b: 'y' },
        ]),
      ),
      {
        text: '("a", "b") values ($1, $2), ($3, $4)',
        values: [1, 'x', 2, 'y'],
      },
    );
    assert.deepEqual(compileSql(insertRows([{ a: null }])), { text: '("a") values ($1)', values: [null] });
  });

  test('an update names each column before its value', () => {
    assert.deepEqual(compileSql(assignments({ a: 1, 'b"c': null })), {
      text: '"a" = $1, "b""c" = $2',
      values: [1, null],
    });
  });
});

describe('in Postgres', () => {
  let sql: Sql;
  before(async () => {
    sql = openSql((await createDatabase(undefined, { empty: true })).url, {
      maxConnections: 1,
      name: 'test',
    });
    await sql`create table thing (id integer, "odd ""name" text, flag boolean, bytes bytea)`;
  });
  after(() => sql.end());

  test('whatever the values, what is inserted and updated is read back', async () => {
    const cell = fc.record(
      {
        'odd "name': fc.option(
          fc.string({ unit: anyCharacter }).filter((text) => text.isWellFormed() && !text.includes('\0')),
        ),
        flag: fc.option(fc.boolean()),
        bytes: fc.uint8Array().map((bytes) => Buffer.from(bytes)),
      },
      { noNullPrototype: true },
    );
    await fc.assert(
      fc.asyncProperty(fc.array(cell, { minLength: 1, maxLength: 30 }), cell, async (cells, changed) => {
        await sql`delete from thing`;
        await sql`insert into thing ${insertRows(cells.map((one, id) => ({ id, ...one })))}`;
        const read = () => sql`select ${identifier('odd "name')}, flag, bytes from thing order by id`;
        assert.deepEqual([...(await read())], cells);
        await sql`update thing set ${assignments(changed)} where id = ${0}`;
        assert.deepEqual([...(await read())], [changed, ...cells.slice(1)]);
      }),
      { seed: 3, numRuns: 40 },
    );
  });

  test('a value of any kind of text stays a value', async () => {
    const text = `'; drop table thing; -- " $1 \\ ${'\u2028'}`;
    const [row] = await sql<{ text: string }[]>`select ${text}::text as text`;
    assert.equal(row?.text, text);
  });
});
