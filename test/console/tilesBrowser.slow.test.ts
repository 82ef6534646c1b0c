import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { MVT, tileFile, vectorTile } from '../support/console/tileFile.ts';
import { visitConsole } from '../support/console/visitor.ts';
import { makeOwner } from '../support/http/application.ts';
import { startBrowser, withoutBrowser } from '../support/http/browser.ts';
import { NO_LIMITS, startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { waitFor } from '../support/waitFor.ts';

const OWNER = 'owner@example.com';
const MAP = "document.querySelector('.map').view.map";

describe('the base map of the console', { skip: withoutBrowser() }, () => {
  let browser: Browser;
  before(async () => {
    browser = await startBrowser({ hasWebGl: true });
  });
  after(() => browser?.close());

  async function enter(t: TestContext, tiles: string) {
    const { url } = await createDatabase(t);
    await makeOwner(adminOf(url), OWNER);
    const pod = await startPod(url, { t, env: { ...NO_LIMITS, ROLES: 'api', CONSOLE_TILES: tiles } });
    const visitor = await visitConsole(t, browser, pod.api);
    await visitor.logIn(OWNER);
    await waitFor(() => visitor.page.evaluate("document.querySelector('.map')?.view !== undefined"));
    return visitor;
  }

  const drawn = (page: Page, layer: string) =>
    page.evaluate(
      `${MAP}.getLayer('${layer}') !== undefined && ${MAP}.queryRenderedFeatures({ layers: ['${layer}'] }).length`,
    ) as Promise<number | false>;
  const hasVehicles = (page: Page) =>
    page.evaluate("document.querySelector('.maplibregl-canvas ~ canvas.vehicles') !== null");

  test('is that of a file of tiles, with its source in a corner, below the vehicles', async (t) => {
    const metadata = { vector_layers: [{ id: 'water' }, { id: 'other' }], attribution: 'Somebody' };
    const { page, complaints } = await enter(
      t,
      await tileFile(t, { type: MVT, tile: vectorTile('water'), metadata }),
    );
    await waitFor(async () => ((await drawn(page, 'tiles-water')) as number) > 0);
    await page.getByText('Somebody').waitFor();
    assert.equal(await hasVehicles(page), true);
    await page.emulateMedia({ colorScheme: 'dark' });
    await waitFor(async () => ((await drawn(page, 'tiles-water')) as number) > 0);
    assert.deepEqual(complaints, []);
  });

  test('is a style of another host, whose tiles the map may fetch', async (t) => {
    const asked: string[] = [];
    const host = createServer((request, response) => {
      asked.push(request.url ?? '');
      response.setHeader('Access-Control-Allow-Origin', '*');
      response.end(request.url === '/style' ? JSON.stringify(style) : vectorTile('water'));
    }).listen(0, '127.0.0.1');
    t.after(() => host.close());
    await new Promise((resolve) => host.once('listening', resolve));
    const origin = `http://127.0.0.1:${(host.address() as { port: number }).port}`;
    const tiles = { type: 'vector', tiles: [`${origin}/{z}/{x}/{y}`], maxzoom: 0 };
    const style = {
      version: 8,
      sources: { tiles },
      layers: [{ id: 'sea', type: 'fill', source: 'tiles', 'source-layer': 'water' }],
    };
    const { page, complaints } = await enter(t, `${origin}/style`);
    await waitFor(async () => ((await drawn(page, 'sea')) as number) > 0);
    assert.equal(await hasVehicles(page), true);
    assert.deepEqual([...new Set(asked)].sort(), ['/0/0/0', '/style']);
    assert.ok(
      complaints.every((line) => line.startsWith(`asked: ${origin}/`)),
      complaints.join('\n'),
    );
  });

  test('is coasts and borders where the style does not come, and the page says so', async (t) => {
    const { page } = await enter(t, 'http://127.0.0.1:9/style');
    await page.getByText('The base map of 127.0.0.1:9 cannot be loaded.').waitFor();
    await waitFor(async () => ((await drawn(page, 'land')) as number) > 0);
    assert.equal(await hasVehicles(page), true);
  });
});
