import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import type { Locator, Page } from 'playwright-core';
import { dateOf, fieldText } from '../../src/console/page/format.ts';
import { BUS, OWNER, openConsole, VAN } from '../support/console/openedConsole.ts';
import { violationsIn } from '../support/console/violations.ts';
import { callApi, logIn } from '../support/http/application.ts';
import { newContext, withoutBrowser } from '../support/http/browser.ts';
import { waitFor, waitForEqual } from '../support/waitFor.ts';
import { startReceiver } from '../support/webhooks/receiver.ts';
import { webhookEnv } from '../support/webhooks/webhooks.ts';

// What six people come for, from the question to its answer, in the page alone. The API only prepares and checks.

const OTHER_VAN = '356938035643825';
const TRUCK = '356938035643833';
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
const SITE = { lat: 41.9, lng: 12.5 };
const DEVICES = {
  [VAN]: ['--name', 'Van 12', '--plate', 'AB 1', '--groups', 'vans'],
  [OTHER_VAN]: ['--name', 'Van 7', '--groups', 'vans'],
  [BUS]: ['--name', 'Bus 3', '--groups', 'buses'],
  [TRUCK]: ['--name', 'Truck 5'],
};

describe('the stories of six people', { skip: withoutBrowser() }, () => {
  const opened = openConsole(DEVICES, { env: webhookEnv(MINUTE_MS) });

  const sendTo = (imei: string, metresNorth: number, speed_kmh = 0, atMs?: number) =>
    opened.send(imei, { latitude: SITE.lat + metresNorth / 111_111, longitude: SITE.lng, speed_kmh }, atMs);

  async function api(method: string, path: string, body?: object) {
    const token = await logIn(opened.pod, OWNER);
    const reply = await callApi(opened.pod, method, `/v1${path}`, { token, body });
    assert.ok(reply.status < 300, reply.text);
    return reply.body?.data;
  }

  const makeSite = (name: string) =>
    api('POST', '/areas', { name, type: 'circle', center: SITE, radius_m: 200 });

  async function enter(): Promise<{ page: Page; show(view: string): Promise<void> }> {
    const { page, logIn: open, show } = await opened.visitAgain();
    await open(OWNER);
    return { page, show };
  }

  /** Chooses a vehicle as people do who know its name. */
  async function find(page: Page, name: string): Promise<void> {
    await page.getByLabel('Search').fill(name);
    await page.keyboard.press('Enter');
    await page.getByLabel(`Chosen: ${name}`).waitFor();
  }

  test('a dispatcher finds the nearest free van of a group, and shares it until it enters the site', async () => {
    await makeSite('Site of Rossi');
    await sendTo(BUS, 500);
    await sendTo(OTHER_VAN, 1_000, 40);
    await sendTo(VAN, 2_000);
    const { page, show } = await enter();
    await show('Areas');
    await page.getByLabel('Group').fill('vans');
    await page.getByRole('button', { name: /^parked/ }).click();
    await page.getByRole('button', { name: 'Site of Rossi' }).click();
    await page.getByRole('button', { name: 'Nearest vehicles' }).click();
    const near = page.getByRole('region', { name: 'Nearest to Site of Rossi' });
    await near.getByText('Of the vehicles that are parked, in vans').waitFor();
    let listed = '';
    await waitFor(
      async () => {
        listed = (await near.getByRole('listitem').allInnerTexts()).join();
        return /^\s*Van 12\s+parked\s+2\.0 km\s*$/.test(listed);
      },
      () => `the nearest is not Van 12 alone but "${listed}"`,
    );
    assert.deepEqual(await violationsIn(page), [], 'the nearest');
    await near.getByRole('link', { name: 'Van 12' }).click();
    await page.getByRole('button', { name: 'Share' }).click();
    const form = page.getByRole('form', { name: 'New share' });
    await form.getByLabel('Ends sooner when it enters').selectOption('Site of Rossi');
    assert.deepEqual(await violationsIn(page), [], 'a share');
    await form.getByRole('button', { name: 'Make a link' }).click();
    const url = String(await page.locator('.secret code').textContent());
    assert.equal((await fetch(url)).status, 200);
    await sendTo(VAN, 0, 20);
    await waitForEqual(async () => (await fetch(url)).status, 410, 'the answer of the link');
    await show('Settings');
    await page.getByRole('region', { name: 'Shares' }).getByText('ended with the arrival').waitFor();
  });

  test('a fleet manager sees where a van was on a day, how long at the site, and saves the day', async () => {
    const noonMs = new Date(Date.now() - 3 * DAY_MS).setHours(12, 0, 0, 0);
    await makeSite('Yard');
    const metres = [9_000, 6_000, 3_000, 0, 0, 0, 0, 3_000, 6_000];
    for (const [n, north] of metres.entries())
      await sendTo(VAN, north, north === 0 ? 0 : 36, noonMs + n * 5 * MINUTE_MS);
    for (const north of [5_000, 2_000, 0]) await sendTo(VAN, north, 30);
    let occurredAt = '';
    await waitFor(async () => {
      const [newest] = await api('GET', `/events?type=geofence&device=${VAN}&limit=1`);
      occurredAt = newest?.occurred_at ?? '';
      return /entered Yard/.test(newest?.message ?? '');
    }, 'the van has not entered the yard');
    await makeSite('Annex');
    const { page, show } = await enter();
    await find(page, 'Van 12');
    const day = page.getByLabel('A day');
    await day.getByLabel('Day', { exact: true }).fill(dateOf(noonMs));
    await day.getByText(/^15\.0 km$/).waitFor();
    const legs = day.getByRole('list', { name: 'Trips and stops' });
    await legs.getByText('stood 15 min').waitFor();
    const download = page.waitForEvent('download');
    await day.getByRole('button', { name: 'CSV' }).click();
    const saved = await readFile(await (await download).path(), 'utf8');
    assert.equal(saved.trim().split('\n').length, metres.length + 1);
    await day.getByLabel('Day', { exact: true }).fill(dateOf(Date.parse(occurredAt)));
    await day.getByRole('img', { name: /^\d+ events? on the line/ }).waitFor();
    await day.getByText(/^\d+ events?$/).click();
    await day.getByRole('button', { name: /Van 12 entered Yard/ }).waitFor();
    assert.deepEqual(await violationsIn(page), [], 'a day with events');
    await show('Areas');
    await page.getByLabel('Find an area').fill('ann');
    await page.getByText('1 area', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Annex' }).waitFor();
    await page.getByLabel('Find an area').fill('yard');
    await page.getByRole('button', { name: 'Yard' }).click();
    await page.getByRole('button', { name: 'Overlaps' }).click();
    const overlapping = page.getByRole('region', { name: 'What overlaps Yard' });
    await overlapping.getByText('100 % of Yard, 100 % of Annex').waitFor();
    await page.getByRole('heading', { name: 'Inside now' }).waitFor();
    const isAbove =
      "document.querySelector('main > .panel').offsetTop < document.querySelector('main > .rows').offsetTop";
    assert.ok(await page.evaluate(isAbove), 'what was chosen stands below all areas');
    assert.deepEqual(await violationsIn(page), [], 'areas that overlap');
    await page.getByRole('button', { name: 'Who was here?' }).click();
    const panel = page.getByRole('region', { name: 'Who was in Yard?' });
    await panel.getByLabel('From').fill(fieldText(noonMs));
    await panel.getByLabel('To').fill(fieldText(noonMs + HOUR_MS));
    await panel.getByRole('button', { name: 'Look' }).click();
    await panel
      .getByRole('listitem')
      .filter({ hasText: /Van 12\s*15 min/ })
      .waitFor();
  });

  test('an analyst tries a new area on the last month, and chooses its minimum stay by the picture', async () => {
    const thenMs = Date.now() - 20 * DAY_MS;
    // A minute at the gate, and later twenty.
    for (const [minute, north] of [
      [0, 5_000],
      [5, 0],
      [6, 5_000],
      [30, 0],
      [40, 0],
      [50, 5_000],
    ] as const)
      await sendTo(TRUCK, north, 30, thenMs + minute * MINUTE_MS);
    const { page, show } = await enter();
    await show('Areas');
    await page.getByRole('button', { name: 'New area' }).click();
    const form = page.getByRole('form', { name: 'Area' });
    await form.getByLabel('Name').fill('Gate');
    await form.getByLabel('Centre').fill(`${SITE.lat}, ${SITE.lng}`);
    await form.getByRole('button', { name: 'Try on last month' }).click();
    const slider = form.getByLabel('Minimum stay', { exact: true });
    await slider.waitFor();
    const stay = async () => (await slider.getAttribute('aria-valuetext')) ?? '';
    for (let now = await stay(); !/^2 min: /.test(now); now = await stay()) {
      await slider.press('ArrowRight');
      await waitFor(async () => (await stay()) !== now, `no longer minimum stay than ${now} is tried`);
    }
    await form.getByRole('list', { name: 'Gone' }).getByText('Truck 5: entry').waitFor();
    await form.getByRole('button', { name: 'Take 2 min as minimum stay' }).click();
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Gate is saved.').waitFor();
    const areas: { name: string; dwell_seconds: number }[] = await api('GET', '/areas');
    assert.equal(areas.find(({ name }) => name === 'Gate')?.dwell_seconds, 120);
  });

  test('somebody on call sees since when a webhook fails and why, pauses and mends it, and replays', async (t) => {
    const receiver = await startReceiver(t);
    const answer = '{"error":"<b>the store is full</b><img src=x onerror=alert(1)>"}';
    receiver.behave([{ status: 500, body: answer }]);
    const failing = { url: `${receiver.url}/old`, events: ['geofence_enter'] };
    await api('POST', '/webhooks', failing);
    await makeSite('Works');
    await sendTo(BUS, 5_000, 30);
    await sendTo(BUS, 0, 30);
    await waitFor(
      async () => (await api('GET', '/webhooks'))[0].failing !== null,
      'the webhook does not fail',
    );
    const { page, show } = await enter();
    await show('Settings');
    await page.getByText(/^Failing since .* \(\d+ attempts?\)/).waitFor();
    await page.getByText('failing', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Deliveries' }).click();
    const panel = page.getByRole('region', { name: `Deliveries to ${failing.url}` });
    await waitFor(async () => {
      await panel.getByRole('button', { name: 'Refresh' }).click();
      return comesSoon(panel.getByText('the receiver answered 500'));
    }, 'no delivery says what the receiver answered');
    await panel
      .getByText('The oldest')
      .locator('..')
      .getByText(/now|ago/)
      .waitFor();
    const failed = panel.locator('.deliveries > li', { hasText: 'the receiver answered 500' }).first();
    await failed.getByText('Payload and attempts').click();
    await failed.getByRole('list', { name: 'Attempts' }).getByText('failed', { exact: true }).waitFor();
    assert.equal(await failed.getByLabel('The answer to attempt 1').textContent(), answer);
    const payload = JSON.parse((await failed.getByLabel('Payload', { exact: true }).textContent()) ?? '');
    assert.ok(receiver.received.some(({ body }) => body === JSON.stringify(payload)));
    await page.getByRole('button', { name: 'API' }).click();
    await panel.getByText(/deliveries\/dlv_[0-9a-f]{32}'/).waitFor();
    for (const [colorScheme, width] of [
      ['light', 360],
      ['dark', 1440],
    ] as const) {
      await page.emulateMedia({ colorScheme });
      await page.setViewportSize({ width, height: 780 });
      assert.deepEqual(await violationsIn(page), [], `a delivery, ${colorScheme}, ${width} px`);
      const overflow = 'document.documentElement.scrollWidth - document.documentElement.clientWidth';
      assert.equal(await page.evaluate(overflow), 0, 'nothing is wider than the page');
    }
    await page.getByRole('button', { name: 'API' }).click();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByText('paused', { exact: true }).waitFor();
    await page.getByRole('button', { name: 'Edit' }).click();
    const form = page.getByRole('form', { name: 'Webhook', exact: true });
    await form.getByLabel('URL').fill(`${receiver.url}/new`);
    await form.getByRole('button', { name: 'Save' }).click();
    await form.waitFor({ state: 'detached' });
    receiver.behave([200]);
    await page.getByRole('button', { name: 'Start again' }).click();
    await page.getByRole('button', { name: 'Pause' }).waitFor();
    await page.getByRole('button', { name: 'Deliveries' }).click();
    const replay = page.getByRole('form', { name: 'Replay' });
    await replay.getByLabel('Made since').fill(fieldText(Date.now() - HOUR_MS));
    await replay.getByRole('button', { name: 'Replay all that failed' }).click();
    await page.getByText(/deliver(y is|ies are) sent again/).waitFor();
    await waitFor(async () => {
      await page.getByRole('button', { name: 'Refresh' }).click();
      return comesSoon(page.locator('.deliveries .status.delivered'));
    }, 'no delivery is delivered');
    await waitFor(async () => {
      await page.getByRole('button', { name: 'Refresh' }).click();
      return comesSoon(page.getByText('active', { exact: true }));
    }, 'what works again still counts as failing');
    assert.ok(receiver.received.some(({ path }) => path === '/new'));
  });

  test('a link for a guest is made in the settings, listed there, and ended by hand', async () => {
    const { page, show } = await enter();
    await show('Settings');
    const shares = page.getByRole('region', { name: 'Shares' });
    await shares.locator('summary', { hasText: 'New share' }).click();
    await shares.getByLabel('Ends', { exact: true }).fill('');
    await shares.getByRole('button', { name: 'Make a link' }).click();
    await shares.getByText('expires_at is required').waitFor();
    await shares.locator('[aria-invalid="true"][placeholder="Name, plate or IMEI"]').waitFor();
    await shares.getByLabel('Vehicle').fill('ab1');
    await page.keyboard.press('Enter');
    await shares.getByRole('button', { name: 'Leave out Van 12' }).waitFor();
    await shares.getByLabel('Ends', { exact: true }).fill(fieldText(Date.now() + HOUR_MS));
    await shares.getByRole('button', { name: 'Make a link' }).click();
    const url = String(await shares.locator('.secret code').textContent());
    assert.equal((await fetch(url)).status, 200);
    const listed = shares.getByRole('listitem').first();
    await listed.getByRole('button', { name: 'End' }).click();
    await listed.getByRole('button', { name: 'End the link now' }).click();
    await listed.getByText('ended by hand').waitFor();
    assert.equal((await fetch(url)).status, 410);
  });

  test('a guest follows the van by a link on a telephone, until it arrives', async () => {
    await sendTo(VAN, 3_000, 40);
    const { id } = await makeSite('Home');
    const ends = { expires_at: new Date(Date.now() + HOUR_MS).toISOString(), until_area_id: id };
    const { url } = await api('POST', '/shares', { devices: [VAN], name: 'Your parcel', ...ends });
    const context = await newContext(opened.browser, { viewport: { width: 360, height: 640 } });
    const page = await context.newPage();
    await page.goto(url);
    await page.getByRole('heading', { name: 'Your parcel' }).waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
    await page.getByText('Van 12').waitFor();
    assert.deepEqual(await violationsIn(page), [], 'a shared vehicle');
    await sendTo(VAN, 0, 20);
    await page.getByText('This link has ended.').waitFor();
    await context.close();
  });

  test('a viewer sees all, and is offered nothing that is refused', async () => {
    const READ = ['/areas', '/webhooks', '/shares', '/keys'];
    const stateOf = async () => JSON.stringify(await Promise.all(READ.map((path) => api('GET', path))));
    await api('POST', '/shares', {
      devices: [BUS],
      expires_at: new Date(Date.now() + HOUR_MS).toISOString(),
    });
    await api('POST', '/keys', { name: 'Screen', scopes: ['read_devices'] });
    await opened.admin.run('account:update', '--email', OWNER, '--role', 'viewer');
    const before = await stateOf();
    const { page, show } = await enter();
    const refused = refusalsOf(page);
    await page.getByText('Viewer', { exact: true }).waitFor();
    const size = page.viewportSize();
    await page.setViewportSize({ width: 360, height: 640 });
    const rows = () =>
      page.evaluate<number>(
        "new Set([...document.querySelectorAll('header button')].map((button) => button.offsetTop)).size",
      );
    await waitForEqual(rows, 1, 'the rows of buttons on a telephone');
    if (size !== null) await page.setViewportSize(size);
    await find(page, 'Van 12');
    await page.getByRole('button', { name: 'Follow' }).waitFor();
    await pressAll(page);
    await show('Devices');
    await page.getByText('4 of 4 devices').waitFor();
    await pressAll(page);
    await show('Events');
    await page
      .getByText(/Bus 3 entered/)
      .first()
      .waitFor();
    await show('Areas');
    await page.getByRole('button', { name: 'Gate' }).click();
    await page.getByLabel('Who is in Gate').waitFor();
    await page.getByRole('button', { name: 'Try changes' }).click();
    const form = page.getByRole('form', { name: 'Area' });
    await form.getByRole('button', { name: 'Try on last week' }).click();
    await form.getByText(/of the last seven days/).waitFor();
    await form.getByLabel('Name').fill('Mine');
    await form.getByLabel('Name').press('Enter');
    await pressAll(page);
    await show('Settings');
    for (const [region, text] of [
      ['API keys', 'Screen'],
      ['Webhooks', '/new'],
      ['Shares', 'Bus 3'],
    ] as const)
      await page.getByRole('region', { name: region, exact: true }).getByText(text).first().waitFor();
    await pressAll(page);
    await page.getByRole('button', { name: 'Refresh' }).waitFor();
    assert.deepEqual(await violationsIn(page), [], 'the settings of a viewer');
    assert.deepEqual(refused, []);
    assert.equal(await stateOf(), before);
  });

  test('a role that changes while the page is open is said, and what is offered changes with it', async () => {
    await opened.admin.run('account:update', '--email', OWNER, '--role', 'member');
    const { page, show } = await enter();
    await show('Settings');
    const webhooks = page.getByRole('region', { name: 'Webhooks', exact: true });
    await webhooks.getByRole('button', { name: 'Edit' }).click();
    await opened.admin.run('account:update', '--email', OWNER, '--role', 'viewer');
    await webhooks.getByRole('form').getByRole('button', { name: 'Save' }).click();
    await page.getByText('Your account is a viewer now').waitFor();
    await webhooks.getByRole('button', { name: 'Deliveries' }).waitFor();
    assert.deepEqual(await webhooks.getByRole('button').allInnerTexts(), ['Deliveries']);
    assert.deepEqual(await violationsIn(page), [], 'what is said about the role');
    await page.getByRole('button', { name: 'Understood' }).click();
    await page.reload();
    await page.getByText('Viewer', { exact: true }).waitFor();
    await opened.admin.run('account:update', '--email', OWNER, '--role', 'member');
    await waitFor(async () => {
      await show('Devices');
      await show('Settings');
      return comesSoon(page.getByText('Your account may change things again'));
    });
    await webhooks.getByRole('button', { name: 'Edit' }).waitFor();
  });
});

/** Whether it is seen within a second: a page that is pressed again and again at once is drawn all the time. */
const comesSoon = (what: Locator): Promise<boolean> =>
  what
    .first()
    .waitFor({ timeout: 1_000 })
    .then(
      () => true,
      () => false,
    );

/** The calls of a page that were refused with 403, as they come. */
function refusalsOf(page: Page): string[] {
  const refused: string[] = [];
  page.on('response', (response) => {
    const request = response.request();
    if (response.status() === 403) refused.push(`${request.method()} ${request.url()}`);
  });
  return refused;
}

/** Presses what can be pressed in the view that is shown, also what appears by that, each once. */
async function pressAll(page: Page): Promise<void> {
  const buttons = page.locator('main :is(button, summary):visible:enabled');
  const pressed = new Set(['Close']); // else nothing would stay open
  for (;;) {
    const names = await buttons.evaluateAll((all) =>
      all.map((each) => each.getAttribute('aria-label') ?? each.textContent?.trim() ?? ''),
    );
    const at = names.findIndex((name) => !pressed.has(name));
    if (at < 0) return;
    pressed.add(names[at] as string);
    await buttons.nth(at).click();
  }
}
