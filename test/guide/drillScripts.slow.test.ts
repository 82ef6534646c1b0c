import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { globSync, readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import { describe, test } from 'node:test';
import { promisify } from 'node:util';
import { guidePages, PROJECT } from './guide.ts';
import { findProgram } from './programs.ts';

// The drills need packages that few machines have. What can be seen without running them is looked at everywhere.

const run = promisify(execFile);
const FOLDER = join(PROJECT, 'deploy', 'drills');
const scripts = globSync('*.sh', { cwd: FOLDER }).sort();
/** Programs that scripts may call by their name: a function that is misspelt is none of them. */
const PROGRAMS =
  'cat chmod chown curl cut dirname env find head install ip mkdir readlink rm sed setpriv setsid sleep tail tr uname'.split(
    ' ',
  );
/** Variables that a shell has from the start. */
const GIVEN = ['HOME', 'PATH'];

/** What a script of bash says, as far as names go. Only the forms of these scripts are read. */
interface ShellNames {
  readonly called: readonly string[];
  readonly functions: readonly string[];
  readonly read: readonly string[];
  readonly assigned: readonly string[];
}

function namesOf(script: string): ShellNames {
  const joined = script.replaceAll('\\\n', ' ').replace(/\$\(\(.*?\)\)/g, '0');
  // What is expanded in a document in place is what is expanded in double quotes.
  const text = joined.replace(/<<(\w+)(.*)\n([\s\S]*?)^\1$/gm, '$2 "$3"');
  const { code, expanded } = withoutQuoted(text);
  const commands = code.replace(/^\s*[\w*| ]+\)/gm, ''); // what a case compares with
  const all = (pattern: RegExp, of: string) => [...of.matchAll(pattern)].map(([, name]) => name as string);
  return {
    called: all(
      /(?:^|[|;&({!])\s*(?:(?:!|if|then|else|do|until|while)\s+)*([a-z_][\w-]*)(?![\w-]*(?:=|\(\)))/gm,
      commands,
    ),
    functions: all(/^(\w+)\(\)/gm, code),
    read: all(/\$\{?([A-Za-z_]\w*)/g, expanded),
    assigned: [
      ...all(/(?:^|[\s;(])([A-Za-z_]\w*)=/gm, code),
      ...all(/\bfor (\w+) in\b/g, code),
      ...[...code.matchAll(/\b(?:local|read -r) ([^;|&\n]*)/g)].flatMap(
        ([, names = '']) => names.match(/\w+/g) ?? [],
      ),
    ],
  };
}

/** `code`: without comments and quoted text, but with the commands in it. `expanded`: without what is in single quotes. */
function withoutQuoted(text: string): { code: string; expanded: string } {
  let code = '';
  let expanded = '';
  const stack: ('code' | 'quoted')[] = ['code'];
  const endOf = (mark: string, from: number): number => `${text}${mark}`.indexOf(mark, from);
  for (let at = 0; at < text.length; at++) {
    const inCode = stack.at(-1) === 'code';
    const [char, before] = [text[at] as string, text[at - 1] ?? '\n'];
    if (inCode && char === "'") at = endOf("'", at + 1);
    else if (inCode && char === '#' && /\s/.test(before)) at = endOf('\n', at) - 1;
    else if (char === '\\') at++;
    else if (char === '"') inCode ? stack.push('quoted') : stack.pop();
    else {
      expanded += char;
      if (char === '(' && (inCode || before === '$')) {
        stack.push('code');
        code += char;
      } else if (inCode) code += char;
      if (inCode && char === ')' && stack.length > 1) stack.pop();
    }
  }
  return { code, expanded };
}

test('names in a script are read as bash reads them', () => {
  const script = `#!/bin/bash
# comment of $NOTHING
readonly PLACE=/tmp
main() {
  local one=$1 two
  case $one in
    up | down) "$one" ;;
    *) sed -n 's/$OTHER/x/' "$0"; exit 2 ;;
  esac
  for node in 1 2; do start "$node $(adress "$node")" && [ -e x ] || ! stopp; done
  cat <<TEXT
  $(inner "$HIDDEN") it's $two
TEXT
}
start() { read -r A B <"$PLACE"; X=1 echo "call(me); $A"; }
`;
  const names = namesOf(script);
  assert.deepEqual(
    new Set(names.called),
    new Set([
      'readonly',
      'local',
      'case',
      'sed',
      'exit',
      'esac',
      'for',
      'start',
      'adress',
      'stopp',
      'done',
      'cat',
      'inner',
      'read',
    ]),
  );
  assert.deepEqual(names.functions, ['main', 'start']);
  assert.deepEqual(new Set(names.read), new Set(['one', 'node', 'HIDDEN', 'two', 'PLACE', 'A']));
  assert.deepEqual(new Set(names.assigned), new Set(['PLACE', 'one', 'two', 'node', 'A', 'B', 'X', '1']));
});

describe('scripts of deploy/drills', { skip: findProgram('bash') === null && 'there is no bash' }, () => {
  for (const name of scripts) {
    const path = join(FOLDER, name);
    const text = readFileSync(path, 'utf8');
    const documented = [...text.matchAll(new RegExp(`^#   ${name} .*$`, 'gm'))].flatMap(([line]) =>
      [...line.matchAll(/(?:sh|\|) ([a-z]+)/g)].map(([, command]) => command as string),
    );

    test(`${name} is one that bash can read, and can be started`, async () => {
      await run('bash', ['-n', path]);
      assert.ok((statSync(path).mode & 0o111) !== 0, 'it is executable');
      assert.match(text, /^set -euo pipefail$/m);
    });

    test(`${name} calls what there is, and reads variables that are set`, async () => {
      const { stdout } = await run('bash', ['-c', 'compgen -b -k']);
      const { called, functions, read, assigned } = namesOf(text);
      const callable = new Set([...stdout.split('\n'), ...functions, ...PROGRAMS]);
      assert.deepEqual(
        called.filter((word) => !callable.has(word)),
        [],
      );
      const known = new Set([...assigned, ...GIVEN]);
      assert.deepEqual(
        read.filter((word) => !known.has(word)),
        [],
      );
      assert.ok(called.length > 20 && read.length > 20, 'something was read');
    });

    test(`${name} has the commands that its head names, and prints them`, async () => {
      const main = /^main\(\) \{$[\s\S]*?^\}$/m.exec(text)?.[0] ?? '';
      const taken = [...main.matchAll(/^ {4}([a-z][a-z |]*)\)/gm)].flatMap(([, words = '']) =>
        words.split(' | '),
      );
      assert.deepEqual(documented.toSorted(), taken.toSorted());
      const failed = await run(path).then(
        () => assert.fail('it wants a command'),
        (error: { code: number; stderr: string }) => error,
      );
      assert.equal(failed.code, 2);
      for (const command of documented) assert.match(failed.stderr, new RegExp(`(?:sh|\\|) ${command}\\b`));
    });
  }

  test('the guide names scripts and commands that there are', () => {
    const named = guidePages.flatMap(({ text }) => [
      ...text.matchAll(/deploy\/drills\/([\w-]+\.sh)(?: ([a-z]+))?/g),
    ]);
    assert.deepEqual(
      [...new Set(named.map(([, name]) => name))].sort(),
      scripts.map((name) => basename(name)),
    );
  });
});
