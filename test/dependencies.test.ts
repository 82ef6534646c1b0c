import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { describe, test } from 'node:test';

interface LockedPackage {
  readonly version: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly dev?: boolean;
  readonly optional?: boolean;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
}

const read = (name: string) => readFileSync(new URL(`../${name}`, import.meta.url), 'utf8');
const packagesOf = (lockFile: string): Readonly<Record<string, LockedPackage>> =>
  JSON.parse(read(lockFile)).packages;
const packages = packagesOf('package-lock.json');
/** Generators and linters that only tests run: test/tools/tools.ts. */
const tools = packagesOf('test/tools/package-lock.json');
/** The compiler, the linter and the search for dead code, which only `npm run check` runs. */
const checkers = packagesOf('test/checkers/package-lock.json');

describe('what is installed is what was tried', () => {
  test('every package has a checksum, but for tools of development on other systems', () => {
    for (const lock of [packages, tools, checkers]) {
      const without = Object.entries(lock).filter(
        ([name, { integrity }]) => name !== '' && integrity === undefined,
      );
      for (const [name, { dev, optional, os = [], cpu = [], libc = ['glibc'] }] of without) {
        const isOfLinux = os.includes('linux') && cpu.includes('x64') && libc.includes('glibc');
        assert.ok(
          (dev === true || lock !== packages) && optional === true && os.length > 0 && !isOfLinux,
          name,
        );
        assert.match(name, /^node_modules\/@(?:biomejs\/cli|oxc-parser\/binding|duckdb\/node-bindings)-/);
      }
    }
  });

  test('no package names the registry that it came from', () => {
    const named = [packages, tools, checkers]
      .flatMap((lock) => Object.entries(lock))
      .filter(([, { resolved }]) => resolved !== undefined);
    assert.deepEqual(named, []);
  });

  test('there is one compiler of TypeScript, so that every tsc says the same', () => {
    const compilers = [packages, checkers]
      .flatMap((lock) => Object.keys(lock))
      .filter((name) => /(?:^|\/)(?:native-)?typescript$/.test(name));
    assert.deepEqual(compilers, ['node_modules/typescript']);
  });

  test('the image is built on the full version of Node that the tests run on', () => {
    const bases = [...read('Dockerfile').matchAll(/^FROM (\S+)/gm)].map(([, base]) => base);
    const expected = `node:${packages['node_modules/node']?.version}-bookworm-slim`;
    assert.deepEqual(bases, [expected, expected]);
    assert.equal(`v${packages['node_modules/node']?.version}`, process.version);
  });
});
