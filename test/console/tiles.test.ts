import assert from 'node:assert/strict';
import { writeFile } from 'node:fs/promises';
import { before, describe, type TestContext, test } from 'node:test';
import { archiveBytes, MVT, PIXEL, PNG, tileFile, vectorTile } from '../support/console/tileFile.ts';
import { rawRequest } from '../support/http/http.ts';
import { startPod } from '../support/pod.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

const ATTRIBUTION = '<a href="https://example.com/">"Someone" & others</a>';

let url: string;
before(async () => {
  ({ url } = await createDatabase());
});

async function served(t: TestContext, tiles: string) {
  const { api } = await startPod(url, { t, env: { ROLES: 'api', CONSOLE_TILES: tiles } });
  const { text, headers } = await rawRequest(api, '/console');
  const [, json = ''] = /<div id="console"[^>]* data-tiles="([^"]*)">/.exec(text) ?? [];
  const plain = json.replace(/&#(\d+);/g, (_, code) => String.fromCharCode(Number(code)));
  return { api, given: plain === '' ? null : JSON.parse(plain), headers, text };
}

describe('CONSOLE_TILES', () => {
  test('a file of vector tiles: each as it is stored, for ever, and nothing where there is none', async (t) => {
    const tile = vectorTile('water');
    const metadata = { vector_layers: [{ id: 'water' }, { id: 'roads' }], attribution: ATTRIBUTION };
    const { api, given } = await served(t, await tileFile(t, { type: MVT, tile, metadata }));
    const { tiles, ...source } = given.source;
    const bounds = [-180, -85, 180, 85];
    assert.deepEqual(source, { type: 'vector', minzoom: 0, maxzoom: 0, bounds, attribution: ATTRIBUTION });
    assert.deepEqual(given.layers, ['water', 'roads']);
    const reply = await fetch(api + (tiles[0] as string).replace(/\{[zxy]\}/g, '0'));
    assert.equal(reply.status, 200);
    assert.equal(reply.headers.get('content-type'), 'application/vnd.mapbox-vector-tile');
    assert.match(reply.headers.get('cache-control') ?? '', /immutable/);
    assert.deepEqual(Buffer.from(await reply.arrayBuffer()), tile);
    for (const path of ['1/1/1', '24/16777215/0'])
      assert.equal((await rawRequest(api, `/console/tiles/${path}`)).status, 204, path);
    assert.equal((await rawRequest(api, '/console/tiles/0/0/0')).headers['cache-control'], 'no-cache');
    for (const path of ['0/1/0', '1/0/2', '-1/0/0', '0/0/0.png', '0/0', '25/0/0', '%2e%2e/0/0', '1/%201/0'])
      assert.equal((await rawRequest(api, `/console/tiles/${path}`)).status, 404, path);
    assert.equal((await rawRequest(api, '/console/tiles/0/0/0', { method: 'POST' })).status, 405);
    const head = await rawRequest(api, '/console/tiles/0/0/0', { method: 'HEAD' });
    assert.ok(head.text === '' && Number(head.headers['content-length']) > 0);
  });

  test('a file of images', async (t) => {
    const { api, given } = await served(t, await tileFile(t, { type: PNG, tile: PIXEL }));
    assert.equal(given.source.type, 'raster');
    assert.deepEqual(given.layers, []);
    const reply = await fetch(`${api}/console/tiles/0/0/0`);
    assert.equal(reply.headers.get('content-encoding'), null);
    assert.deepEqual(Buffer.from(await reply.arrayBuffer()), PIXEL);
  });

  test('the address of a style: the page may ask its origin, and so may the worker of the map', async (t) => {
    const { api, given, headers, text } = await served(t, 'https://tiles.example.com/styles/a?key=1');
    assert.deepEqual(given, { styleUrl: 'https://tiles.example.com/styles/a?key=1' });
    const [, worker = ''] = /"maplibre-gl\/worker":"([^"]+)"/.exec(text) ?? [];
    for (const policy of [headers, (await rawRequest(api, worker)).headers])
      assert.match(
        policy['content-security-policy'] as string,
        /; connect-src 'self' https:\/\/tiles\.example\.com;/,
      );
    assert.equal((await rawRequest(api, '/console/tiles/0/0/0')).status, 404);
  });

  test('a file that is cut short, or has no map in it, costs the streets only', async (t) => {
    const whole = archiveBytes({ type: MVT, tile: vectorTile('water') });
    const noMap = archiveBytes({ type: 0, tile: PIXEL });
    for (const bytes of [whole.subarray(0, 20), whole.subarray(0, 128), noMap]) {
      const path = await tileFile(t, { type: PNG, tile: PIXEL });
      await writeFile(path, bytes);
      const { api, given } = await served(t, path);
      assert.equal(given, null);
      assert.equal((await rawRequest(api, '/console/tiles/0/0/0')).status, 404);
    }
  });
});
