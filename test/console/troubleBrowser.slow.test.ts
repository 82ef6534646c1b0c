import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import type { BrowserContext, Page, Route } from 'playwright-core';
import { openConsole } from '../support/console/openedConsole.ts';
import { BUS, OWNER, VAN } from '../support/console/servedConsole.ts';
import { callApi, logIn } from '../support/http/application.ts';
import { withoutBrowser } from '../support/http/browser.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const LIMIT = 'rate limit exceeded: 1000 requests per key per hour';
/** More than a session may have streams, and more than a browser opens connections to a host. */
const TABS = 11;
const PLACE = { latitude: 40, longitude: 10 };

describe('what the console says when not all is well', { skip: withoutBrowser() }, () => {
  const opened = openConsole({ [VAN]: ['--name', 'Van 12'], [BUS]: ['--name', 'Bus 3'] });

  test('a browser that cannot draw the map has the lists, and a silent vehicle is offline there after ten minutes', async (t) => {
    await opened.send(VAN, PLACE);
    const { page, complaints, logIn: enter, show } = await opened.visit(t);
    await page.clock.install();
    await enter(OWNER);
    await page.getByText('This browser cannot draw the map').waitFor();
    await page.getByLabel('Search').fill('van');
    await page.getByRole('button', { name: 'Van 12' }).click();
    await page.getByLabel('Chosen: Van 12').waitFor();
    await show('Devices');
    await page.getByText('2 of 2 devices').waitFor();
    await opened.send(BUS, PLACE, Date.now() - 10 * MINUTE_MS + 11_000);
    const row = page.getByRole('row', { name: 'Bus 3' });
    await row.getByText('moving').waitFor();
    await page.clock.fastForward(13_000);
    await row.getByText('offline').waitFor();
    await page.getByRole('row', { name: 'Van 12' }).getByText('moving').waitFor();
    assert.deepEqual(complaints, []);
  });

  test('what a limit refuses is said and asked for again: earlier events, and the stream, which is not "lost"', async (t) => {
    const { page, logIn: enter, show } = await opened.visit(t);
    await page.clock.install();
    const asked = Promise.withResolvers<Route>();
    await page.route('**/api/v1/events?*', (route) => asked.resolve(route));
    await enter(OWNER);
    await show('Events');
    await page.getByText('Loading…').waitFor();
    assert.equal(await page.getByText('Nothing has happened yet').count(), 0, 'nobody knows yet');
    await refuse(await asked.promise);
    await page.getByText(`Earlier events could not be read: ${LIMIT}. They`).waitFor();
    assert.equal(await page.getByText('Nothing has happened yet').count(), 0);
    await page.unroute('**/api/v1/events?*');
    await page.clock.fastForward(21_000);
    await page.getByText('Nothing has happened yet').waitFor();

    await page.route('**/api/v1/stream*', refuse);
    await page.reload();
    const inAnHour = (await page.evaluate('new Date(Date.now() + 3_600_000).toLocaleTimeString()')) as string;
    const said = page.getByText(`Not live: ${LIMIT}, until `);
    await said.waitFor();
    const [, until = '', again = ''] =
      /until (.*) at the latest\. Next try at (.*)\./.exec((await said.textContent()) ?? '') ?? [];
    assert.ok(secondsBetween(inAnHour, until) <= 20, `${until} is about ${inAnHour}`);
    await page.clock.fastForward(21_000);
    await page.getByText(`Next try at ${again}.`).waitFor({ state: 'detached' });
    assert.ok((await said.textContent())?.includes(`until ${until} at the latest`), 'still the same window');
    await page.unroute('**/api/v1/stream*');
    await page.clock.fastForward(21_000);
    await page.getByText('Live', { exact: true }).waitFor();
  });

  test('more tabs of a session than it may have streams are live all the same, and stay so when tabs close', async (t) => {
    const token = await logIn(opened.pod, OWNER);
    const context = await opened.browser.newContext();
    t.after(() => context.close());
    await context.addInitScript(`sessionStorage.setItem('fleet-session', '${token}')`);
    const pages: Page[] = [];
    for (let n = 1; n < TABS; n++) pages.push(await tab(context));
    const last = await tab(context);
    await seesMoves(last, 40.11111);
    await pages.shift()?.close(); // it had the stream
    await seesMoves(last, 40.22222);
    for (const page of pages) await page.close();
    await seesMoves(last, 40.33333);
  });

  const tab = async (context: BrowserContext): Promise<Page> => {
    const page = await context.newPage();
    await page.goto(`${opened.pod.api}/console#devices`);
    await page.getByText('Live', { exact: true }).waitFor();
    return page;
  };

  const seesMoves = async (page: Page, latitude: number): Promise<void> => {
    await opened.send(VAN, { latitude, longitude: 10 });
    await page.getByText(`${latitude}, 10.00000`).waitFor();
    await page.getByRole('row', { name: 'Bus 3' }).waitFor();
  };

  test('a webhook that was made is counted beside it; one that the service has paused says why, and is resumed', async (t) => {
    const { page, logIn: enter, show } = await opened.visit(t);
    await enter(OWNER);
    await show('Settings');
    await page.getByRole('row', { name: /^Webhooks 0 100$/ }).waitFor();
    await page.route('**/api/v1/webhooks?limit=200', async (route) => {
      const response = await route.fetch();
      const { data, meta } = await response.json();
      const paused = { reason: 'failing', since: '2026-03-02T08:40:00.000Z' };
      await route.fulfill({
        response,
        json: { data: data.map((webhook: object) => ({ ...webhook, paused })), meta },
      });
    });
    const form = page.getByRole('form', { name: 'New webhook' });
    await form.getByLabel('URL').fill('https://hooks.example.com/fleet');
    await form.getByRole('button').click();
    await page.getByRole('row', { name: /^Webhooks 1 100$/ }).waitFor();
    await page.getByText('no attempt has succeeded for five days').waitFor();
    await page.unroute('**/api/v1/webhooks?limit=200');
    const resumed = page.waitForResponse((response) => response.url().endsWith('/resume'));
    await page.getByRole('button', { name: 'Resume' }).click();
    assert.equal((await resumed).status(), 200);
    await page.getByRole('button', { name: 'Resume' }).waitFor({ state: 'detached' });
  });

  test('on a telephone the map stays in sight of a new area, which is not made twice when the answer is lost', async (t) => {
    const { page, logIn: enter, show } = await opened.visit(t, { viewport: { width: 360, height: 780 } });
    await enter(OWNER);
    await show('Areas');
    await page.getByRole('button', { name: 'New area' }).click();
    const form = page.getByRole('form', { name: 'Area' });
    for (const field of ['Name', 'Minimum stay']) {
      await form.getByLabel(field).click();
      const [map, input] = [
        await page.locator('.map-pane').boundingBox(),
        await form.getByLabel(field).boundingBox(),
      ];
      assert.ok(map !== null && input !== null);
      assert.ok(
        map.y >= -1 && map.y + map.height <= 781 && map.height > 200,
        `${field}: the map is at ${map.y}`,
      );
      assert.ok(input.y >= map.y + map.height - 1, `${field}: the map covers it`);
    }

    await form.getByLabel('Name').fill('Quay');
    const ring = [[12, 41], [12.01, 41], [12, 41.01], [12, 41]]; // biome-ignore format: one line
    const hole = [[12.001, 41.001], [12.002, 41.001], [12.001, 41.002], [12.001, 41.001]]; // biome-ignore format: one line
    await form.getByLabel('or GeoJSON').fill(JSON.stringify({ type: 'Polygon', coordinates: [ring, hole] }));
    await form.getByText('The holes of this polygon are left out').waitFor();
    await page.route(isList, async (route) => {
      await route.fetch();
      await route.abort();
    });
    await form.getByRole('button', { name: 'Save' }).click();
    await form.getByText('The service cannot be reached').waitFor();
    await page.unroute(isList);
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Quay is saved.').waitFor();
    const token = await logIn(opened.pod, OWNER);
    const { body } = await callApi(opened.pod, 'GET', '/v1/areas?q=Quay', { token });
    assert.equal(body.data.length, 1);
  });
});

const isList = (url: URL): boolean => url.pathname === '/api/v1/areas';

const refuse = (route: Route): Promise<void> =>
  route.fulfill({ status: 429, json: { error: { code: 'TOO_MANY_REQUESTS', message: LIMIT } } });

/** Between two times of a day, as the browser writes them. */
function secondsBetween(a: string, b: string): number {
  const ms = Math.abs(dayMs(a) - dayMs(b));
  return Math.min(ms, DAY_MS - ms) / 1_000;
}

function dayMs(time: string): number {
  return Date.parse(`2026-01-01 ${time.replaceAll(/\s/g, ' ')}`);
}
