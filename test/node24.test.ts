import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { test } from 'node:test';

const PROJECT = join(import.meta.dirname, '..');
const GUARD = './src/node24.mjs';

/** Starts the guard and then a script, as if this were a Node of the given version. */
function start(version: string) {
  const pretend = `data:text/javascript,Object.defineProperty(process, 'versions', { value: { node: '${version}' } })`;
  const script = ['--input-type=module', '--eval', 'console.log("started")'];
  return spawnSync(process.execPath, ['--import', pretend, '--import', GUARD, ...script], {
    cwd: PROJECT,
    encoding: 'utf8',
  });
}

test('an older Node is told which one is needed and how to get it, in words instead of an error code', () => {
  const { status, stdout, stderr } = start('20.20.2');
  assert.equal(status, 1);
  assert.equal(stdout, '');
  assert.match(stderr, /^This needs Node 24, .*"npm ci" installs Node 24/s);
});

test('Node 24 and later start without a word', () => {
  for (const version of ['24.0.0', '26.1.0']) {
    const { status, stdout, stderr } = start(version);
    assert.deepEqual([status, stdout, stderr], [0, 'started\n', ''], version);
  }
});

test('what a script has compiled is kept beside the packages, for the next one', () => {
  const { NODE_COMPILE_CACHE: _, ...env } = process.env;
  const script = 'console.log(process.getBuiltinModule("node:module").getCompileCacheDir())';
  const { stdout } = spawnSync(process.execPath, ['--import', GUARD, '--eval', script], {
    cwd: PROJECT,
    encoding: 'utf8',
    env,
  });
  assert.equal(dirname(stdout.trim()), join(PROJECT, 'node_modules', '.cache', 'fleet'));
});

test('every script that runs TypeScript is guarded, and the package says which Node it needs', () => {
  const { scripts, engines } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8')) as {
    readonly scripts: Readonly<Record<string, string>>;
    readonly engines: { readonly node: string };
  };
  assert.equal(engines.node, '>=24');
  const own = Object.values(scripts).filter((script) => script.startsWith('node '));
  assert.ok(own.length >= 6);
  for (const script of own) assert.ok(script.startsWith(`node --import ${GUARD} `), script);
});

test('npm start and the image give new objects the same room, and the bench measures with it', () => {
  const { scripts } = JSON.parse(readFileSync(join(PROJECT, 'package.json'), 'utf8'));
  const image = /^CMD (.+)$/m.exec(readFileSync(join(PROJECT, 'Dockerfile'), 'utf8'))?.[1] ?? '';
  const flags = [scripts.start, scripts.bench, image].map(
    (command) => /--max-semi-space-size=\d+/.exec(command)?.[0],
  );
  assert.deepEqual(flags, [
    '--max-semi-space-size=16',
    '--max-semi-space-size=16',
    '--max-semi-space-size=16',
  ]);
});
