import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser, Page } from 'playwright-core';
import { startBrowser, withoutBrowser } from '../../support/http/browser.ts';
import { describedApi } from '../../support/http/describedApi.ts';
import { type Pod, startPod } from '../../support/pod.ts';
import { adminOf } from '../../support/postgres/admin.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';
import { waitFor } from '../../support/waitFor.ts';

const VAN = '356938035643809';
const PHONE_WIDTH = 360;

describe('the page of the description in a browser', { skip: withoutBrowser() }, () => {
  let pod: Pod;
  let key: string;
  let browser: Browser;
  /** One page for all tests, with all that it complained of and every other host that it asked for anything. */
  let page: Page;
  let complaints: string[] = [];

  before(async () => {
    const database = await createDatabase();
    const admin = adminOf(database.url);
    await admin.account('owner@example.com');
    ({ key } = await admin.key('owner@example.com'));
    await admin.device('owner@example.com', VAN, '--name', 'Van 12');
    pod = await startPod(database.url);
    await pod.points([{ imei: VAN, recorded_at: Date.now(), latitude: 41.9, longitude: 12.5 }]);
    browser = await startBrowser();
    page = await browser.newPage({ viewport: { width: 1200, height: 1000 } });
    page.on('console', (message) => complaints.push(`${message.type()}: ${message.text()}`));
    page.on('pageerror', (error) => complaints.push(`thrown: ${error.message}`));
    page.on('request', (request) => {
      const { protocol, origin } = new URL(request.url());
      if (protocol !== 'data:' && origin !== pod.api) complaints.push(`asked: ${request.url()}`);
    });
    await page.goto(`${pod.api}/api/v3/docs`);
    await page.waitForSelector('#operations-Devices-nearestDevices');
  });

  after(async () => {
    await browser.close();
    await pod.stop();
  });

  /** Types the key where the cursor is in the dialog of credentials: it comes first. */
  async function authorize(): Promise<void> {
    await page.click('.btn.authorize');
    const titles = await page.locator('.modal-ux .auth-container h4').allTextContents();
    assert.deepEqual(
      titles.map((title) => title.split(/\W/, 1)[0]),
      ['ApiKey', 'Session'],
    );
    await page.keyboard.type(key);
    await page.keyboard.press('Enter');
    await page.click('.modal-ux .btn-done >> nth=0');
  }

  /** Opens "nearest", sends it as it stands there, and returns the status once it is shown. */
  async function askForNearest(): Promise<string> {
    const operation = '#operations-Devices-nearestDevices';
    if ((await page.$(`${operation}.is-open`)) === null)
      await page.click(`${operation} .opblock-summary-control`);
    const answered = page.waitForResponse((response) => response.url().includes('/devices/nearest'));
    await page.click(`${operation} .execute`);
    const status = String((await answered).status());
    // What was answered before is shown until the page has been drawn anew.
    await page.waitForSelector(
      `${operation} .live-responses-table tbody .response-col_status:has-text("${status}")`,
    );
    return status;
  }

  const answerShown = async (): Promise<string> =>
    (await page.textContent(
      '#operations-Devices-nearestDevices .live-responses-table tbody .highlight-code',
    )) ?? '';

  test('shows every operation, complains of nothing and asks nobody else', async () => {
    assert.equal(await page.title(), 'Fleet Tracking Service API');
    const operations = Object.values(describedApi().paths).flatMap(Object.keys);
    await waitFor(async () => (await page.locator('.opblock').count()) === operations.length);
    assert.equal(await page.locator('.topbar').count(), 0);

    // Errors take a line each: an operation fits two screens, and each error can be opened.
    const operation = '#operations-Areas-createArea';
    await page.click(`${operation} .opblock-summary-control`);
    const errors = page.locator(`${operation} .error-response`);
    const create = describedApi().paths['/api/v3/areas']?.['post'] as { readonly responses: object };
    await errors.getByText('CONFLICT').waitFor();
    assert.deepEqual(
      await errors.locator('> .response-col_status').allTextContents(),
      Object.keys(create.responses).filter((status) => status !== '201'),
    );
    for (const row of await errors.all()) assert.ok(((await row.boundingBox())?.height ?? 1_000) < 60);
    const { height = 10_000 } = (await page.locator(`${operation} .responses-wrapper`).boundingBox()) ?? {};
    assert.ok(height < 1_500, `${height} px`);

    const forbidden = errors.filter({ hasText: '403' });
    assert.match(
      (await forbidden.textContent()) ?? '',
      /API_KEY_REQUIRED, API_KEY_INVALID, .*INSUFFICIENT_SCOPE/s,
    );
    assert.equal(await forbidden.locator('.highlight-code').count(), 0);
    await forbidden.locator('summary').click();
    assert.match(
      (await forbidden.locator('.highlight-code').textContent()) ?? '',
      /"code": "API_KEY_REQUIRED"/,
    );
    assert.deepEqual(complaints, []);
  });

  test('a key is tried: the answer is shown, and the key is gone with the page, which / leads back to', async () => {
    assert.equal(await askForNearest(), '403');
    assert.match(await answerShown(), /API_KEY_REQUIRED/);

    await authorize();
    const sent = page.waitForRequest((request) => request.url().includes('/devices/nearest'));
    assert.equal(await askForNearest(), '200');
    assert.equal((await sent).headers()['x-api-key'], key);
    assert.match(await answerShown(), /"name": "Van 12"/);

    const kept =
      'JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie, location.href])';
    assert.doesNotMatch(await page.evaluate(kept), new RegExp(key));
    await page.goto(pod.api);
    await page.click('text=API documentation');
    await page.waitForSelector('#operations-Devices-nearestDevices');
    assert.equal(new URL(page.url()).pathname, '/api/v3/docs');
    assert.equal(await askForNearest(), '403');
    // The browser itself reports the two rejected calls that were provoked.
    assert.deepEqual(
      complaints.filter((complaint) => !complaint.includes('status of 403')),
      [],
    );
    complaints = [];
  });

  test(`fits a screen of ${PHONE_WIDTH} px, whatever is unfolded, and is dark where the reader prefers it`, async () => {
    await page.setViewportSize({ width: PHONE_WIDTH, height: 780 });
    await page.emulateMedia({ colorScheme: 'dark' });
    await page.waitForSelector('html.dark-mode');
    const width = () => page.evaluate('document.scrollingElement.scrollWidth');
    assert.equal(await width(), PHONE_WIDTH);
    await authorize();
    assert.equal(await askForNearest(), '200');
    for (const operation of [
      'Areas-createArea',
      'Areas-importAreas',
      'Events-listEvents',
      'Webhooks-createWebhook',
    ]) {
      await page.click(`#operations-${operation} .opblock-summary-control`);
      await page.waitForSelector(`#operations-${operation} .responses-table`);
    }
    assert.equal(await width(), PHONE_WIDTH);
    // The text of a response has the width of the screen, not that of a narrow column.
    const answers = page.locator(
      '#operations-Events-listEvents .response[data-code="200"] .response-col_description',
    );
    assert.ok(((await answers.boundingBox())?.width ?? 0) > 0.8 * PHONE_WIDTH);

    const background = 'getComputedStyle(document.documentElement).backgroundColor';
    assert.notEqual(await page.evaluate(background), 'rgb(250, 250, 250)');
    await page.emulateMedia({ colorScheme: 'light' });
    await page.waitForSelector('html:not(.dark-mode)');
    assert.equal(await page.evaluate(background), 'rgb(250, 250, 250)');
    assert.deepEqual(complaints, []);
  });

  test('runs nothing that is injected into it', async () => {
    // What is injected into the page does not run, and the test would hear of it.
    await page.evaluate(`
      document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.injected = 1' }));
      document.body.append(Object.assign(document.createElement('img'), { src: 'https://other.example/x.png' }));
    `);
    assert.equal(await page.evaluate('window.injected'), undefined);
    assert.ok(
      complaints.some((complaint) => /script.*Content Security Policy/is.test(complaint)),
      String(complaints),
    );
    assert.ok(complaints.some((complaint) => /other\.example.*Content Security Policy/is.test(complaint)));
  });
});
