import assert from 'node:assert/strict';
import { request as httpRequest } from 'node:http';
import { after, before, describe, test } from 'node:test';
import { brotliDecompressSync, gunzipSync } from 'node:zlib';
import { describedApi } from '../../support/http/describedApi.ts';
import { rawRequest } from '../../support/http/http.ts';
import { NO_LIMITS, type Pod, startPod } from '../../support/pod.ts';
import { adminOf } from '../../support/postgres/admin.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';

const DESCRIPTION = '/api/v3/openapi.json';
const PAGE = '/api/v3/docs';

/** What comes for an Accept-Encoding, as it comes. */
function bytesOf(
  base: string,
  path: string,
  accepted: string,
): Promise<{ encoding: string | undefined; bytes: Buffer }> {
  const { hostname, port } = new URL(base);
  return new Promise((resolve, reject) => {
    const headers = { 'Accept-Encoding': accepted };
    httpRequest({ hostname, port, path, headers }, async (response) => {
      const encoding = response.headers['content-encoding'];
      resolve({ encoding, bytes: Buffer.concat(await response.toArray()) });
    })
      .once('error', reject)
      .end();
  });
}

describe('the description and its page', () => {
  let pod: Pod;

  before(async () => {
    const database = await createDatabase();
    await adminOf(database.url).account('owner@example.com');
    pod = await startPod(database.url, { env: { ...NO_LIMITS, RATE_LIMIT_IP_MINUTE: '1' } });
  });

  after(() => pod.stop());

  /** Paths of the files that the page loads, as it names them. */
  const filesOf = async (): Promise<string[]> => {
    const { text } = await rawRequest(pod.api, PAGE);
    return Array.from(
      text.matchAll(/<(?:script|link)[^>]+(?:src|href)="([^"]+)"/g),
      ([, path]) => path as string,
    );
  };

  test('are for everybody, and counted by no limit', async () => {
    for (let n = 0; n < 3; n++) {
      for (const path of [DESCRIPTION, PAGE, ...(await filesOf())]) {
        const { status, headers } = await rawRequest(pod.api, path);
        assert.deepEqual([status, headers['x-api-status']], [200, 'beta'], path);
      }
    }
    assert.equal((await rawRequest(pod.api, '/api/v3/devices')).status, 403);
    assert.equal((await rawRequest(pod.api, '/api/v3/devices')).status, 429);
    assert.equal((await rawRequest(pod.api, PAGE)).status, 200);
  });

  test('the description is the one of these routes, as JSON', async () => {
    const { text, headers } = await rawRequest(pod.api, DESCRIPTION);
    assert.equal(headers['content-type'], 'application/json; charset=utf-8');
    assert.deepEqual(JSON.parse(text), describedApi());
  });

  for (const path of [DESCRIPTION, `${DESCRIPTION}/`, PAGE, `${PAGE}/`]) {
    test(`${path}: HEAD, OPTIONS and other methods are answered as everywhere`, async () => {
      const got = await rawRequest(pod.api, path);
      const head = await rawRequest(pod.api, path, { method: 'HEAD' });
      assert.deepEqual([got.status, head.status, head.text], [200, 200, '']);
      for (const name of ['content-type', 'content-length', 'etag', 'cache-control']) {
        assert.equal(head.headers[name], got.headers[name], name);
      }
      const options = await rawRequest(pod.api, path, { method: 'OPTIONS' });
      assert.deepEqual(
        [options.status, options.headers.allow, options.text],
        [204, 'GET, HEAD, OPTIONS', ''],
      );
      for (const method of ['POST', 'PUT', 'DELETE']) {
        const { status, text, headers } = await rawRequest(pod.api, path, { method });
        assert.deepEqual([status, JSON.parse(text).error.code], [405, 'METHOD_NOT_ALLOWED']);
        assert.equal(headers.allow, 'GET, HEAD, OPTIONS');
      }
    });

    test(`${path}: who has this version gets 304, whoever has another gets it`, async () => {
      const { headers, text } = await rawRequest(pod.api, path);
      const etag = headers.etag as string;
      assert.equal(headers['cache-control'], 'no-cache');
      for (const tags of [etag, `"other", ${etag}`, etag.replace('W/', ''), '*']) {
        const again = await rawRequest(pod.api, path, { headers: { 'If-None-Match': tags } });
        assert.deepEqual([again.status, again.text, again.headers.etag], [304, '', etag], tags);
      }
      const other = await rawRequest(pod.api, path, { headers: { 'If-None-Match': 'W/"other"' } });
      assert.deepEqual([other.status, other.text], [200, text]);
    });
  }

  test('what is sent compressed is the same, and only sent so to who takes it', async () => {
    for (const path of [DESCRIPTION, PAGE, ...(await filesOf())]) {
      const plain = await bytesOf(pod.api, path, 'br;q=0, gzip;q=0');
      const small = await bytesOf(pod.api, path, 'gzip, br;q=0');
      const smallest = await bytesOf(pod.api, path, 'gzip, br');
      assert.deepEqual([plain.encoding, small.encoding, smallest.encoding], [undefined, 'gzip', 'br']);
      assert.deepEqual(gunzipSync(small.bytes), plain.bytes);
      assert.deepEqual(brotliDecompressSync(smallest.bytes), plain.bytes);
    }
  });

  test('the page has a strict policy and names only files of this service, which may be kept for ever', async () => {
    const { headers, text } = await rawRequest(pod.api, PAGE);
    const policy = headers['content-security-policy'] as string;
    for (const part of [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "connect-src 'self'",
    ]) {
      assert.ok(policy.split('; ').includes(part), part);
    }
    assert.doesNotMatch(policy, /unsafe|https?:|\*/);
    assert.doesNotMatch(text, /<style|<script>|style=|https?:\/\//);
    const files = await filesOf();
    assert.ok(files.length >= 5);
    for (const file of files) {
      assert.match(file, /^\/api\/v3\/docs\/[\w.-]+\?v=[\w-]{16}$/);
      const kept = await rawRequest(pod.api, file);
      assert.equal(kept.headers['cache-control'], 'public, max-age=31536000, immutable', file);
      const another = await rawRequest(pod.api, file.replace(/v=.*/, 'v=0000000000000000'));
      assert.equal(another.headers['cache-control'], 'no-cache', file);
      assert.equal(kept.headers['x-content-type-options'], 'nosniff');
    }
  });

  describe('/ says what this is', () => {
    const BROWSER = 'text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8';
    const kinds: readonly (readonly [accept: string | undefined, type: string])[] = [
      [BROWSER, 'text/html'],
      [undefined, 'application/json'],
      ['application/json', 'application/json'],
      ['application/json, text/html;q=0.5', 'application/json'],
      ['nonsense', 'application/json'],
    ];
    for (const [accept, type] of kinds) {
      test(`as ${type} where Accept is ${accept ?? 'missing'}`, async () => {
        const headers: Record<string, string> = accept === undefined ? {} : { Accept: accept };
        const { status, headers: sent, text } = await rawRequest(pod.api, '/?from=anywhere', { headers });
        assert.deepEqual([status, sent['content-type']], [200, `${type}; charset=utf-8`]);
        assert.equal(sent.vary, 'Accept, Accept-Encoding');
        assert.equal(sent['x-api-status'], undefined);
        assert.ok(text.includes(PAGE) && text.includes(DESCRIPTION));
      });
    }

    test('as a page whose links and files exist, under the policy of the other page', async () => {
      const { text, headers } = await rawRequest(pod.api, '/', { headers: { Accept: BROWSER } });
      const other = await rawRequest(pod.api, PAGE);
      assert.equal(headers['content-security-policy'], other.headers['content-security-policy']);
      assert.doesNotMatch(text, /<style|<script|style=|https?:\/\//);
      const paths = Array.from(text.matchAll(/href="([^"]+)"/g), ([, path]) => path as string);
      assert.ok(paths.length >= 4);
      for (const path of paths) assert.equal((await rawRequest(pod.api, path)).status, 200, path);
    });

    test('as JSON in the envelope of every answer', async () => {
      const { text } = await rawRequest(pod.api, '/');
      assert.deepEqual(JSON.parse(text), {
        data: { service: 'Fleet Tracking Service', console: '/console', docs: PAGE, openapi: DESCRIPTION },
        meta: {},
      });
    });

    test('to GET and HEAD, and with its methods to every other', async () => {
      const head = await rawRequest(pod.api, '/', { method: 'HEAD' });
      assert.deepEqual([head.status, head.text], [200, '']);
      const options = await rawRequest(pod.api, '/', { method: 'OPTIONS' });
      assert.deepEqual([options.status, options.headers.allow], [204, 'GET, HEAD, OPTIONS']);
      const post = await rawRequest(pod.api, '/', { method: 'POST' });
      assert.deepEqual([post.status, JSON.parse(post.text).error.code], [405, 'METHOD_NOT_ALLOWED']);
    });
  });

  for (const path of [
    'package.json',
    'swagger-ui.js',
    '../openapi.json',
    '..%2f..%2fpackage.json',
    'swagger-ui.css%00',
    'Swagger-ui.css',
    'docsPage.ts',
    '/etc/passwd',
    '',
  ]) {
    test(`no other file can be had: ${path}`, async () => {
      const { status, text } = await rawRequest(pod.api, `${PAGE}//${path}`);
      assert.deepEqual([status, JSON.parse(text).error.code], [404, 'NOT_FOUND']);
      if (path === '') return;
      const direct = await rawRequest(pod.api, `${PAGE}/${path}`);
      assert.deepEqual([direct.status, JSON.parse(direct.text).error.code], [404, 'NOT_FOUND']);
    });
  }
});
