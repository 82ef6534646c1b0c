import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser, Locator, Page } from 'playwright-core';
import { newContext, startBrowser, withoutBrowser } from '../../support/http/browser.ts';
import { describedApi } from '../../support/http/describedApi.ts';
import { type Pod, startPod } from '../../support/pod.ts';
import { adminOf } from '../../support/postgres/admin.ts';
import { createDatabase } from '../../support/postgres/postgres.ts';
import { waitFor, waitForEqual } from '../../support/waitFor.ts';

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
    page = await (await newContext(browser, { viewport: { width: 1200, height: 1000 } })).newPage();
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
    const titles = async () => {
      const texts = await page.locator('.modal-ux .auth-container h4').allTextContents();
      return texts.map((title) => title.split(/\W/, 1)[0]);
    };
    await waitForEqual(titles, ['ApiKey', 'Session'], 'the credentials in the dialog');
    await page.locator('.modal-ux input:focus').waitFor();
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

  const answerShown = (text: RegExp): Promise<void> =>
    page
      .locator('#operations-Devices-nearestDevices .live-responses-table tbody .highlight-code')
      .filter({ hasText: text })
      .first()
      .waitFor();

  test('shows every operation, complains of nothing and asks nobody else', async () => {
    await waitForEqual(() => page.title(), 'Fleet Tracking Service API', 'the title');
    const operations = Object.values(describedApi().paths).flatMap(Object.keys);
    await waitForEqual(() => page.locator('.opblock').count(), operations.length, 'the operations shown');
    assert.equal(await page.locator('.topbar').count(), 0);

    // Errors take a line each: an operation fits two screens, and each error can be opened.
    const operation = '#operations-Areas-createArea';
    await page.click(`${operation} .opblock-summary-control`);
    const errors = page.locator(`${operation} .error-response`);
    const create = describedApi().paths['/api/v3/areas']?.['post'] as { readonly responses: object };
    await errors.getByText('CONFLICT').waitFor();
    await waitForEqual(
      () => errors.locator('> .response-col_status').allTextContents(),
      Object.keys(create.responses).filter((status) => status !== '201'),
      'the errors listed',
    );
    const becomesLower = (shown: Locator, px: number) =>
      waitFor(
        async () => ((await shown.boundingBox())?.height ?? px) < px,
        `${shown} is ${px} px high or more`,
      );
    for (const row of await errors.all()) await becomesLower(row, 60);
    await becomesLower(page.locator(`${operation} .responses-wrapper`), 1_500);

    const forbidden = errors.filter({ hasText: '403' });
    await forbidden.filter({ hasText: /API_KEY_REQUIRED, API_KEY_INVALID, .*INSUFFICIENT_SCOPE/s }).waitFor();
    assert.equal(await forbidden.locator('.highlight-code').count(), 0);
    await forbidden.locator('summary').click();
    await forbidden.locator('.highlight-code', { hasText: '"code": "API_KEY_REQUIRED"' }).waitFor();
    assert.deepEqual(complaints, []);
  });

  test('a key is tried: the answer is shown, and the key is gone with the page, which / leads back to', async () => {
    assert.equal(await askForNearest(), '403');
    await answerShown(/API_KEY_REQUIRED/);

    await authorize();
    const sent = page.waitForRequest((request) => request.url().includes('/devices/nearest'));
    assert.equal(await askForNearest(), '200');
    assert.equal((await sent).headers()['x-api-key'], key);
    await answerShown(/"name": "Van 12"/);

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
    const width = () => page.evaluate<number>('document.scrollingElement.scrollWidth');
    await waitForEqual(width, PHONE_WIDTH, 'the width');
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
    await waitForEqual(width, PHONE_WIDTH, 'the width');
    // The text of a response has the width of the screen, not that of a narrow column.
    const answers = page.locator(
      '#operations-Events-listEvents .response[data-code="200"] .response-col_description',
    );
    await waitFor(
      async () => ((await answers.boundingBox())?.width ?? 0) > 0.8 * PHONE_WIDTH,
      'the text of a response stands in a narrow column',
    );

    const isLight = () =>
      page.evaluate<boolean>(
        "getComputedStyle(document.documentElement).backgroundColor === 'rgb(250, 250, 250)'",
      );
    await waitForEqual(isLight, false, 'that the page is light in the dark');
    await page.emulateMedia({ colorScheme: 'light' });
    await page.waitForSelector('html:not(.dark-mode)');
    await waitForEqual(isLight, true, 'that the page is light in the light');
    assert.deepEqual(complaints, []);
  });

  test('runs nothing that is injected into it', async () => {
    // What is injected into the page does not run, and the test would hear of it.
    await page.evaluate(`
      document.body.append(Object.assign(document.createElement('script'), { textContent: 'window.injected = 1' }));
      document.body.append(Object.assign(document.createElement('img'), { src: 'https://other.example/x.png' }));
    `);
    for (const refused of [/script.*Content Security Policy/is, /other\.example.*Content Security Policy/is])
      await waitFor(
        () => complaints.some((complaint) => refused.test(complaint)),
        () => `${refused} is not among ${complaints.join()}`,
      );
    assert.equal(await page.evaluate('window.injected'), undefined);
  });
});
