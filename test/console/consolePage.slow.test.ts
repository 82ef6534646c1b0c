import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { describe, test } from 'node:test';
import { withoutComments } from '../../src/console/consoleFiles.ts';
import { rawRequest } from '../support/http/http.ts';
import { ownerPod } from '../support/ownerPod.ts';
import { importTypescript, type SyntaxNode, skipWithoutTools } from '../tools/tools.ts';

const PAGE = '/console';
const COMPRESSED_MAX_BYTES = 520_000;

const { pod } = ownerPod();

async function page() {
  const { status, text, headers } = await rawRequest(pod.api, PAGE);
  assert.equal(status, 200);
  const [, importMap = ''] = /<script type="importmap">(.*?)<\/script>/.exec(text) ?? [];
  const policy = headers['content-security-policy'] as string;
  return {
    text,
    policy,
    importMap,
    files: Array.from(text.matchAll(/(?:href|src)="([^"]+)"/g), ([, at]) => at as string),
  };
}

test('the modules of the console are the same without their comments', {
  skip: skipWithoutTools(),
}, async () => {
  const ts = await importTypescript();
  const folder = new URL('../../src/console/page/', import.meta.url);
  const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((path) =>
    path.endsWith('.ts'),
  );
  assert.ok(files.length > 20);
  /** The text of every part that has no parts of its own, and how deep it stands. */
  const codeOf = (text: string): string[] => {
    const found: string[] = [];
    const visit = (node: SyntaxNode, depth: number): void => {
      const before = found.length;
      ts.forEachChild(node, (child) => visit(child, depth + 1));
      if (found.length === before)
        found.push(`${depth} ${node.kind} ${text.slice(node.getStart(), node.end)}`);
      else found.push(`${depth} ${node.kind}`);
    };
    visit(ts.createSourceFile('module.ts', text, ts.ScriptTarget.Latest, true), 0);
    return found;
  };
  for (const path of files) {
    const text = readFileSync(new URL(path, folder), 'utf8');
    const without = withoutComments(text);
    assert.ok(without.length < text.length || !text.includes('/**'), path);
    assert.deepEqual(codeOf(without), codeOf(text), path);
  }
});

describe('GET /console', () => {
  test('lets the import map run, and nothing else that stands in the page', async () => {
    const { text, policy, importMap } = await page();
    const hash = createHash('sha256').update(importMap).digest('base64');
    assert.ok(policy.split('; ').includes(`script-src 'self' 'sha256-${hash}'`), policy);
    assert.doesNotMatch(policy, /unsafe|https?:|\*|blob/);
    assert.doesNotMatch(text, /<style|<script>|style=|https?:\/\//);
  });

  test('names every file that its modules import, each to be kept for ever, and all of them small', async () => {
    const { text: html, files, importMap } = await page();
    const imports = JSON.parse(importMap).imports as Record<string, string>;
    const [, template = ''] = /data-world="([^"]+)"/.exec(html) ?? [];
    const tiles = ['0/0/0', '1/0/0', '1/1/0', '1/0/1', '1/1/1'].map((tile) =>
      template.replace('{z}/{x}/{y}', tile),
    );
    let bytes = 0;
    for (const tile of tiles) {
      const { status, headers } = await rawRequest(pod.api, tile, { method: 'HEAD' });
      assert.equal(status, 200, tile);
      assert.match(headers['cache-control'] as string, /immutable/);
      bytes += Number(headers['content-length']);
    }
    for (const path of new Set([...files, ...Object.values(imports)])) {
      const { status, text, headers } = await rawRequest(pod.api, path);
      assert.equal(status, 200, path);
      assert.match(headers['cache-control'] as string, /immutable/);
      const asked = { method: 'HEAD', headers: { 'Accept-Encoding': 'br' } };
      bytes += Number((await rawRequest(pod.api, path, asked)).headers['content-length']);
      if (path.endsWith('.png')) continue;
      assert.doesNotMatch(text, /sourceMappingURL/);
      for (const [, name = ''] of text.matchAll(/(?:^|\n)(?:import|export)\s[^;]*?from ?['"]([^'"]+)['"]/g)) {
        const base = new URL(path, 'http://x');
        const known = name.startsWith('.') ? new URL(name, base).pathname : name;
        assert.ok(known in imports, `${path} imports ${name}`);
      }
    }

    assert.ok(bytes > 300_000 && bytes <= COMPRESSED_MAX_BYTES, `${bytes} bytes`);
  });

  test('serves no other file, and nothing but GET and HEAD', async () => {
    for (const path of [
      '/console/tsconfig.json',
      '/console/..%2fmain.ts',
      '/console/types',
      '/console/packages/express.mjs',
      '/console/world/8/0/0',
      '/console/world/1/2/0',
      '/console/world/1/0',
    ])
      assert.equal((await rawRequest(pod.api, path)).status, 404, path);
    for (const path of [PAGE, '/console/main.ts']) {
      const { status, headers } = await rawRequest(pod.api, path, { method: 'POST' });
      assert.deepEqual([status, headers.allow], [405, 'GET, HEAD, OPTIONS']);
      const head = await rawRequest(pod.api, path, { method: 'HEAD' });
      assert.deepEqual([head.status, head.text], [200, '']);
    }
  });
});
