import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import { splitStatements } from '../../src/postgres/migrationFiles.ts';

const textsOf = (file: string): string[] => splitStatements(file).map(({ text }) => text);

describe('a file of SQL is split into its statements', () => {
  const files: [string, string, string[]][] = [
    ['one without a semicolon', 'select 1', ['select 1']],
    ['empty ones are none', ';; select 1;\n;\n', ['select 1']],
    ['comments around them', '-- a; b\nselect 1; /* c; */ -- d\n', ['select 1']],
    ['a comment within', 'select 1 -- a; b\n+ 1;', ['select 1 -- a; b\n+ 1']],
    ['a string', "select 'a; ''b'';'; select 2", ["select 'a; ''b'';'", 'select 2']],
    ['a string that does not end', "select 1; select '2; select 3", ['select 1', "select '2; select 3"]],
    ['a backslash in a plain string', "select '\\'; select 2", ["select '\\'", 'select 2']],
    ['a quoted name', 'select 1 as "a;"";b"; select 2', ['select 1 as "a;"";b"', 'select 2']],
    ['the body of a function', 'do $$ begin; end; $$; select 2', ['do $$ begin; end; $$', 'select 2']],
    ['a body with a tag', 'do $a$ $$; $b$; $a$; select 2', ['do $a$ $$; $b$; $a$', 'select 2']],
    ['parameters are no quotes', 'select $1; select $2', ['select $1', 'select $2']],
  ];
  for (const [name, file, expected] of files)
    test(name, () => {
      assert.deepEqual(textsOf(file), expected);
    });

  test('each with the line that it begins in', () => {
    const file = "-- first\n\nselect 1;\n\n/* a\n b */ select\n  '\n'; select 3;\n\n  select 4";
    assert.deepEqual(
      splitStatements(file).map(({ line }) => line),
      [3, 6, 8, 10],
    );
  });

  test('the schema of the first release, which begins each statement in a line of its own', () => {
    const file = readFileSync(join(import.meta.dirname, '../../sql/0001_schema.sql'), 'utf8');
    const lines = file.split('\n');
    const statements = splitStatements(file);
    assert.ok(statements.length > 100);
    for (const { text, line } of statements) {
      assert.match(text, /^(create|alter|insert|select)\b/);
      assert.ok(lines[line - 1]?.startsWith(text.split('\n')[0] ?? ''), text);
    }
  });
});
