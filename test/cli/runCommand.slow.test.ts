import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import {
  type CommandContext,
  type CommandOutcome,
  defineCommand,
  type FleetCommand,
  flag,
  operand,
  optional,
  required,
} from '../../src/cli/command.ts';
import { COMMANDS, runCommand } from '../../src/cli/runCommand.ts';
import { fail, ok } from '../../src/lib/result.ts';
import { PostgresUnreachable } from '../../src/postgres/sqlErrors.ts';

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
  commands: readonly FleetCommand[] = [greet(body)],
) {
  let stdout = '';
  let stderr = '';
  const print = async (value: unknown) => {
    stdout += `${JSON.stringify(value)}\n`;
    return true;
  };
  const code = await runCommand(argv, {
    commands,
    context: () => ({ print }) as CommandContext,
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

  test('is answered with every error in its values at once, and the usage', async () => {
    const { code, stdout, stderr } = await run(['greet', '--how', 'bad', '--loud']);
    assert.deepEqual([code, stdout], [2, '']);
    assert.equal(
      stderr,
      'greet: --who is missing\ngreet: --how is bad\ngreet: FILE is missing\n\n' +
        'usage: fleet greet --who W [--how H] [--loud] FILE\nMore: fleet greet --help\n',
    );
  });

  const misuse: readonly [string[], string][] = [
    [['--who', 'x', '--who', 'y', 'f'], '--who is given more than once'],
    [['--who', 'x', '--planet', 'y', 'f'], "unknown option '--planet'"],
    [['--who', 'x', 'f', '--how'], "option '--how <H>' argument missing"],
    [['--who', 'x', 'f', 'g'], "too many arguments for 'greet'. Expected 1 argument but got 2: f, g."],
  ];
  for (const [argv, error] of misuse) {
    test(`is not understood: ${argv.join(' ')}`, async () => {
      const { code, stdout, stderr } = await run(['greet', ...argv]);
      assert.deepEqual([code, stdout], [2, '']);
      assert.equal(stderr.split('\n')[0], `greet: ${error}`);
      assert.match(stderr, /\nusage: fleet greet --who W /);
    });
  }

  test('without a command is answered with the list of commands', async () => {
    const { code, stdout, stderr } = await run([]);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /^Usage: fleet <command> \[options\]\n.*\n {2}greet +Greets\.\n/s);
  });

  test('with an unknown command gets the nearest one and the list', async () => {
    const { code, stdout, stderr } = await run(['gret']);
    assert.deepEqual([code, stdout], [2, '']);
    assert.match(stderr, /^fleet: unknown command 'gret'\nfleet: \(Did you mean greet\?\)\n.* {2}greet /s);
  });

  test('may ask for help on everything or on one command', async () => {
    for (const argv of [['--help'], ['-h'], ['help']]) {
      const { code, stdout, stderr } = await run(argv);
      assert.deepEqual([code, stderr], [0, '']);
      assert.match(stdout, /\n {2}greet +Greets\.\n/s);
    }
    for (const argv of [
      ['greet', '--help'],
      ['greet', '--who', 'x', '-h'],
      ['help', 'greet'],
    ]) {
      const { code, stdout } = await run(argv);
      assert.equal(code, 0);
      assert.match(
        stdout,
        /^Usage: fleet greet --who W \[--how H\] \[--loud\] FILE\n\nGreets\.\n\nArguments:\n {2}FILE +a file\n\nOptions:\n {2}--who <W> +whom\n {2}--how <H> +how\n {2}--loud +loudly\n.*\n\nA note\.\n$/,
      );
    }
  });

  test('may ask for the version', async () => {
    const { code, stdout } = await run(['--version']);
    assert.equal(code, 0);
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
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
    assert.equal(
      stderr,
      'greet: the connection to the database was lost, or it did not answer in time; try again\n',
    );
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

test('every command has a name of its own, and its help has a line for each option', async () => {
  assert.equal(new Set(COMMANDS.map(({ name }) => name)).size, COMMANDS.length);
  for (const { name, usage } of COMMANDS) {
    const { stdout } = await run([name, '--help'], undefined, COMMANDS);
    assert.ok(stdout.startsWith(`Usage: fleet ${name} ${usage}`.trimEnd()), name);
    for (const [option] of usage.matchAll(/--[a-z]+/g))
      assert.match(stdout, new RegExp(`\n  ${option}\\b.* \\S`));
  }
});
