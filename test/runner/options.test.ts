import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parseOptions } from './options.ts';

describe('the arguments of a test run', () => {
  test('are words and options, in any order', () => {
    assert.deepEqual(
      parseOptions(['nearest', '--torture', '--seed', '7', 'test/pods', '--name=kill', '--coverage']),
      {
        ok: true,
        value: {
          words: ['nearest', 'test/pods'],
          torture: true,
          quick: false,
          coverage: true,
          help: false,
          seed: '7',
          name: 'kill',
        },
      },
    );
  });

  const rejected: readonly [args: string[], error: RegExp][] = [
    [['--tortured'], /^Unknown option '--tortured'\.$/],
    [['--seed'], /^Option '--seed <value>' argument missing\.?$/],
    [['--seed', 'seven'], /^--seed takes a whole number/],
    [['--quick', '--torture'], /^--quick and --torture do not go together\.$/],
    [['--torture=yes'], /^Option '--torture' does not take an argument\.?$/],
  ];
  for (const [args, error] of rejected) {
    test(`${args.join(' ')}: is refused with the reason`, () => {
      const parsed = parseOptions(args);
      assert.match(parsed.ok ? '' : parsed.error, error);
    });
  }
});
