import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { fail, ok } from '../../src/base/result.ts';
import { type CommandOutcome, defineCommand } from '../../src/cli/command.ts';
import { COMMANDS } from '../../src/cli/commandTable.ts';
import type { CommandContext } from '../../src/cli/context.ts';
import { flag, operand, optional, required } from '../../src/cli/option.ts';
import { runCommand } from '../../src/cli/runCommand.ts';
import { PostgresUnreachable } from '../../src/store/sql.ts';

const word = (text: string) => (text === 'bad' ? fail('is bad') : ok(text.toUpperCase()));

function greet(run: (values: unknown) => Promise<CommandOutcome>) {
  return defineCommand({
    name: 'greet',
    summary: 'Greets.',
    options: {
      who: required('W', 'whom', word),
      how: optional('H', 'how', word),
      loud: flag('loudly'),
      file: operand('FILE', 'a file', word),
    },
    notes: ['A note.'],
    run: (_context, values) => run(values),
  });
}

async function run(
  argv: string[],
  body: (values: unknown) => Promise<CommandOutcome> = async (values) => ok(values),
) {
  let stdout = '';
  let stderr = '';
  const code = await runCommand(argv, {
    commands: [greet(body)],
    context: () => ({}) as CommandContext,
    stdout: (text) => {
      stdout += text;
    },
    stderr: (text) => {
      stderr += text;
    },
  });
  return { code, stdout, stderr };
}

describe('a command line', () => {
  test('gives the values of all options', async () => {
    const { code, stdout, stderr } = await run(['greet', '--loud', 'f', '--who=x', '--how', 'y']);
    assert.deepEqual([code, stderr], [0, '']);
    assert.equal(stdout, '{"who":"X","how":"Y","loud":true,"file":"F"}\n');
    assert.equal((await run(['greet', '--who', 'x', 'f'])).stdout, '{"who":"X","loud":false,"file":"F"}\n');
  });

  test('is answered with all its problems at once, and the usage', async () => {
    const { code, stdout, stderr } = await run(['greet', '--how', 'bad', 'a', 'b']);
    assert.deepEqual([code, stdout], [2, '']);
    assert.equal(
      stderr,
      'greet: --who is missing\ngreet: --how is bad\ngreet: FILE is given more than once\n\n' +
        'usage: fleet greet --who W [--how H] [--loud] FILE\nMore: fleet greet --help\n',
    );
  });

  test('without a command, or with an unknown one, is answered with the list', async () => {
    for (const argv of [[], ['great']]) {
      const { code, stdout, stderr } = await run(argv);
      assert.deepEqual([code, stdout], [2, '']);
      assert.match(stderr, /usage: npm run -s fleet -- <command> \[options\]\n\n {2}greet {2}Greets\.\n/);
    }
    assert.match((await run(['great'])).stderr, /^fleet: there is no command "great"\n/);
  });

  test('asks for help', async () => {
    for (const argv of [['--help'], ['-h'], ['help']]) {
      const { code, stdout, stderr } = await run(argv);
      assert.deepEqual([code, stderr], [0, '']);
      assert.match(stdout, /greet {2}Greets\./);
    }
    for (const argv of [
      ['greet', '--help'],
      ['greet', '--who', 'x', '-h'],
    ]) {
      const { code, stdout } = await run(argv);
      assert.equal(code, 0);
      assert.match(
        stdout,
        /^usage: fleet greet .*\n\nGreets\.\n\n {2}--who W +whom\n {2}--how H +how\n {2}--loud +loudly\n {2}FILE +a file\n\nA note\.\n$/,
      );
    }
  });
});

describe('a command', () => {
  test('that fails says so on stderr, and stdout stays empty', async () => {
    assert.deepEqual(await run(['greet', '--who', 'x', 'f'], async () => fail('nobody is there')), {
      code: 1,
      stdout: '',
      stderr: 'greet: nobody is there\n',
    });
  });

  test('that loses the database says so without a stack trace', async () => {
    const { code, stdout, stderr } = await run(['greet', '--who', 'x', 'f'], async () => {
      throw new PostgresUnreachable(new Error('gone'));
    });
    assert.deepEqual([code, stdout], [1, '']);
    assert.equal(stderr, 'greet: the database was lost or did not answer in time; try again\n');
  });

  test('that is broken shows where', async () => {
    const { code, stdout, stderr } = await run(['greet', '--who', 'x', 'f'], async () => {
      throw new TypeError('x is not a function');
    });
    assert.deepEqual([code, stdout], [1, '']);
    assert.match(
      stderr,
      /^greet: unexpected error, please report it: TypeError: x is not a function\n {4}at /,
    );
  });
});

test('every command has a name of its own, a usage and a help for each option', () => {
  assert.equal(new Set(COMMANDS.map(({ name }) => name)).size, COMMANDS.length);
  for (const { name, usage, help, summary } of COMMANDS) {
    assert.ok(usage.startsWith(`fleet ${name}`) && help.includes(usage) && help.includes(summary), name);
    for (const [option] of usage.matchAll(/--[a-z]+/g))
      assert.match(help, new RegExp(`\n  ${option}\\b.* \\S`));
  }
});
