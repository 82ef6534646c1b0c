import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { Browser, BrowserContext, Page, Route } from 'playwright-core';
import { type Visitor, visitConsole } from '../support/console/visitor.ts';
import { logIn, makeOwner } from '../support/http/application.ts';
import { startBrowser, withoutBrowser } from '../support/http/browser.ts';
import { NO_LIMITS, type Pod, startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';

const OWNER = 'owner@example.com';
const VAN = '356938035643809';
const BUS = '356938035643817';
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const LIMIT = 'rate limit exceeded: 1000 requests per key per hour';
/** More than the service allows streams to a session, and than a browser opens connections. */
const TABS = 11;

describe('what the console says when not all is well', { skip: withoutBrowser() }, () => {
  let pod: Pod;
  let browser: Browser;

  before(async () => {
    const { url } = await createDatabase();
    const admin = adminOf(url);
    await makeOwner(admin, OWNER);
    await admin.device(OWNER, VAN, '--name', 'Van 12');
    await admin.device(OWNER, BUS, '--name', 'Bus 3');
    pod = await startPod(url, { env: { ...NO_LIMITS, ROLES: 'api,ingest' } });
    await send(VAN, Date.now() - MINUTE_MS, { latitude: 40, longitude: 10 });
    browser = await startBrowser();
  });

  after(async () => {
    await browser?.close();
    await pod.stop();
  });

  const send = (imei: string, recorded_at: number, place: object) =>
    pod.points([{ imei, recorded_at, speed_kmh: 50, ...place }]);

  const open = (t: TestContext, viewport = { width: 1280, height: 780 }): Promise<Visitor> =>
    visitConsole(t, browser, pod.api, { viewport });

  test('a vehicle that sends nothing more is offline after ten minutes, without a reload', async (t) => {
    const { page, logIn: enter, show } = await open(t);
    await send(BUS, Date.now() - 10 * MINUTE_MS + 8_000, { latitude: 40, longitude: 10 });
    await enter(OWNER);
    await show('Devices');
    const row = page.getByRole('row', { name: 'Bus 3' });
    await row.getByText('moving').waitFor();
    await row.getByText('offline').waitFor();
    await page.getByRole('row', { name: 'Van 12' }).getByText('moving').waitFor();
  });

  test('earlier events that were refused are said to be, and are asked for again', async (t) => {
    const { page, logIn: enter, show } = await open(t);
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
  });

  test('a stream that a limit refuses is not "lost": the limit is named, and when it is tried again', async (t) => {
    const { page, logIn: enter } = await open(t);
    await enter(OWNER);
    await page.clock.install();
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
    const token = await logIn(pod, OWNER);
    const context = await browser.newContext();
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
    await page.goto(`${pod.api}/console#devices`);
    await page.getByText('Live', { exact: true }).waitFor();
    return page;
  };

  let moves = 0;
  const seesMoves = async (page: Page, latitude: number): Promise<void> => {
    await send(VAN, Date.now() - MINUTE_MS + ++moves, { latitude, longitude: 10 });
    await page.getByText(`${latitude}, 10.00000`).waitFor();
    await page.getByRole('row', { name: 'Bus 3' }).waitFor();
  };

  test('a webhook that was made is counted beside it', async (t) => {
    const { page, logIn: enter, show } = await open(t);
    await enter(OWNER);
    await show('Settings');
    await page.getByRole('row', { name: /^Webhooks 0 100$/ }).waitFor();
    const form = page.getByRole('form', { name: 'New webhook' });
    await form.getByLabel('URL').fill('https://hooks.example.com/fleet');
    await form.getByRole('button').click();
    await page.getByRole('row', { name: /^Webhooks 1 100$/ }).waitFor();
  });

  test('a webhook that the service has paused says why, and is resumed', async (t) => {
    const { page, logIn: enter, show } = await open(t);
    await enter(OWNER);
    await page.route('**/api/v1/webhooks?limit=200', async (route) => {
      const response = await route.fetch();
      const { data, meta } = await response.json();
      const paused = { reason: 'failing', since: '2026-03-02T08:40:00.000Z' };
      const all = data.map((webhook: object) => ({ ...webhook, paused }));
      await route.fulfill({ response, json: { data: all, meta } });
    });
    await show('Settings');
    await page.getByText('no attempt has succeeded for five days').waitFor();
    await page.unroute('**/api/v1/webhooks?limit=200');
    const resumed = page.waitForResponse((response) => response.url().endsWith('/resume'));
    await page.getByRole('button', { name: 'Resume' }).click();
    assert.equal((await resumed).status(), 200);
    await page.getByRole('button', { name: 'Resume' }).waitFor({ state: 'detached' });
  });

  test('on a telephone the map stays in sight while a new area is described', async (t) => {
    const { page, logIn: enter, show } = await open(t, { width: 360, height: 780 });
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
  });
});

const refuse = (route: Route): Promise<void> =>
  route.fulfill({ status: 429, json: { error: { code: 'TOO_MANY_REQUESTS', message: LIMIT } } });

/** Between two times of a day, as the browser writes them. */
function secondsBetween(a: string, b: string): number {
  const [aMs, bMs] = [a, b].map((text) => Date.parse(`2026-01-01 ${text.replaceAll(/\s/g, ' ')}`)) as [
    number,
    number,
  ];
  const ms = Math.abs(aMs - bMs);
  return Math.min(ms, DAY_MS - ms) / 1_000;
}
