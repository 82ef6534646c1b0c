import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { Browser, BrowserContextOptions, Page } from 'playwright-core';
import { logIn, makeOwner, PASSWORD } from '../support/http/application.ts';
import { CIRCLE } from '../support/http/areas.ts';
import { startBrowser, withoutBrowser } from '../support/http/browser.ts';
import { NO_LIMITS, type Pod, request, startPod } from '../support/pod.ts';
import { type Admin, adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { waitFor } from '../support/waitFor.ts';

const OWNER = 'owner@example.com';
const VAN = '356938035643809';
const BUS = '356938035643817';
const FAR = { latitude: 40, longitude: 10 };
const COMPRESSED_MAX_BYTES = 450_000;

describe('the console in a browser', { skip: withoutBrowser() }, () => {
  let pod: Pod;
  let admin: Admin;
  let browser: Browser;
  let url: string;
  let clockMs = Date.now() - 3_600_000;

  before(async () => {
    ({ url } = await createDatabase());
    admin = adminOf(url);
    await makeOwner(admin, OWNER);
    await admin.device(OWNER, VAN, '--name', 'Van 12', '--plate', 'GA 731 KL');
    await admin.device(OWNER, BUS, '--name', 'Bus 3');
    pod = await startPod(url, { env: { ...NO_LIMITS, ROLES: 'api,ingest' } });
    await send(FAR);
    browser = await startBrowser();
  });

  after(async () => {
    await browser?.close();
    await pod.stop();
  });

  const send = (place: object, speed_kmh = 30) => {
    clockMs += 10_000;
    return pod.points([{ imei: VAN, recorded_at: clockMs, speed_kmh, ...place }]);
  };

  /** The page, with all that it complained of, every other host that it asked, and the bytes that came. */
  async function open(t: TestContext, options: BrowserContextOptions = {}) {
    const context = await browser.newContext(options);
    t.after(() => context.close());
    const page = await context.newPage();
    page.setDefaultTimeout(10_000);
    const complaints: string[] = [];
    const loaded: Promise<number>[] = [];
    page.on('console', (message) => complaints.push(`${message.type()}: ${message.text()}`));
    page.on('pageerror', (error) => complaints.push(`thrown: ${error.message}`));
    page.on('request', (request) => {
      if (new URL(request.url()).origin !== pod.api) complaints.push(`asked: ${request.url()}`);
    });
    page.on('requestfinished', (request) => {
      if (/\/console/.test(request.url()))
        loaded.push(request.sizes().then((sizes) => sizes.responseBodySize));
    });
    await page.goto(`${pod.api}/console`);
    await page.waitForSelector('form');
    return { page, complaints, loaded };
  }

  async function enter(page: Page): Promise<void> {
    await page.getByLabel('E-mail').fill(OWNER);
    await page.getByLabel('Password').fill(PASSWORD);
    await page.keyboard.press('Enter');
    await page.getByText('Live', { exact: true }).waitFor();
  }

  const show = (page: Page, view: string) => page.getByRole('link', { name: view, exact: true }).click();

  test('loads from here alone, compressed, and says what is wrong with a login', async (t) => {
    const { page, complaints, loaded } = await open(t);
    const bytes = (await Promise.all(loaded)).reduce((sum, size) => sum + size, 0);
    assert.ok(bytes > 5_000 && bytes <= COMPRESSED_MAX_BYTES, `${bytes} bytes`);
    assert.deepEqual([...complaints], []);
    await page.getByLabel('E-mail').fill(OWNER);
    await page.getByLabel('Password').fill('wrong');
    await page.keyboard.press('Enter');
    await page.getByText('the e-mail address or the password is wrong').waitFor();
    // The browser itself reports the refusal that was provoked.
    assert.deepEqual(
      complaints.filter((complaint) => !complaint.includes('status of 403')),
      [],
    );
  });

  test('shows devices as they move, finds them, and forgets the session with a logout', async (t) => {
    const { page, complaints } = await open(t);
    await enter(page);
    const rows = page.locator('tbody tr');
    await waitFor(async () => (await rows.count()) === 2);
    await send({ latitude: 40.12345, longitude: 10 });
    await page.getByText('40.12345, 10.00000').waitFor();
    for (const text of ['van', 'ga731', VAN.slice(-4)]) {
      await page.getByLabel('Search').fill(text);
      await waitFor(async () => /Van 12/.test((await rows.first().textContent()) ?? ''));
    }
    await page.getByLabel('Search').fill('nobody');
    await page.getByText('No device fits').waitFor();
    const token = await page.evaluate("sessionStorage.getItem('fleet-session')");
    assert.match(String(token), /^fs_/);
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Password').waitFor();
    const headers = { Authorization: `Bearer ${token}` };
    assert.equal((await request(`${pod.api}/api/v1/devices`, { headers })).status, 403);
    assert.deepEqual(complaints, []);
  });

  test('shows an entry as it happens, who is inside, and why', async (t) => {
    const { page, complaints } = await open(t);
    await enter(page);
    const headers = {
      Authorization: `Bearer ${await logIn(pod, OWNER)}`,
      'Content-Type': 'application/json',
    };
    const area = await request(`${pod.api}/api/v1/areas`, {
      method: 'POST',
      headers,
      body: JSON.stringify(CIRCLE),
    });
    const { name, center } = area.body.data;
    await show(page, 'Areas');
    await page.getByRole('button', { name }).click();
    await page.getByText('Nobody is inside').waitFor();
    await send({ latitude: center.lat, longitude: center.lng });
    await page.getByLabel(`Who is in ${name}`).getByText('Van 12').waitFor();
    await show(page, 'Events');
    await page.getByRole('button', { name: new RegExp(`Why: .*entered ${name}`) }).click();
    await page.locator('.why').getByText('inside from').waitFor();
    await send(FAR);
    await page
      .getByText(new RegExp(`left ${name}`))
      .first()
      .waitFor();
    assert.deepEqual(complaints, []);
  });

  test('goes on by itself when the pod is replaced, and misses nothing', async (t) => {
    const own = await startPod(url, { env: { ...NO_LIMITS, ROLES: 'api,ingest' } });
    const context = await browser.newContext();
    t.after(() => context.close());
    const page = await context.newPage();
    await page.goto(`${own.api}/console`);
    await enter(page);
    const port = new URL(own.api).port;
    await own.stop();
    await page.getByText('Line lost').waitFor();
    await send({ latitude: 40.54321, longitude: 10 });
    const next = await startPod(url, { t, env: { ...NO_LIMITS, ROLES: 'api', PORT: port } });
    assert.equal(new URL(next.api).port, port);
    await page.getByText('40.54321, 10.00000').waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
  });

  test('makes a key that works, shows it once, and revokes it', async (t) => {
    const { page, complaints } = await open(t);
    await enter(page);
    await show(page, 'Settings');
    const form = page.getByRole('form', { name: 'New key' });
    await form.getByLabel('Name').fill('Depot screen');
    await form.getByLabel('Only from').fill('nowhere');
    await form.getByRole('button').click();
    await page.locator('#key-allowlist').getByText(/./).waitFor();
    await form.getByLabel('read_devices', { exact: true }).check();
    await form.getByLabel('Only from').fill('127.0.0.0/8');
    await form.getByRole('button').click();
    const key = (await page.locator('.secret code').textContent()) ?? '';
    assert.equal((await pod.get('/api/v3/devices', key)).status, 200);
    assert.equal((await pod.get('/api/v3/events', key)).status, 403);
    await page.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('button', { name: 'Revoke for ever' }).click();
    await page.getByText('revoked', { exact: true }).waitFor();
    assert.equal((await pod.get('/api/v3/devices', key)).status, 403);
    assert.deepEqual(
      complaints.filter((complaint) => !complaint.includes('status of 422')),
      [],
    );
  });

  test('makes a webhook, tests it, shows why deliveries failed, and replays them', async (t) => {
    const { page, complaints } = await open(t);
    await enter(page);
    await show(page, 'Settings');
    const form = page.getByRole('form', { name: 'New webhook' });
    await form.getByLabel('URL').fill('https://hooks.example.com/fleet');
    await form.getByRole('button').click();
    await form.getByText('Its secret:').waitFor();
    await page.getByRole('button', { name: 'Rotate the secret' }).click();
    await page.getByText('The new secret:').waitFor();
    await page.getByRole('button', { name: 'Send a test' }).click();
    await page.getByText('not sent yet').waitFor();
    await admin.sql(
      (sql) =>
        sql`update webhook_delivery set status = 'exhausted', attempts = 5, last_status_code = 503, next_attempt_at = null`,
    );
    await page.getByRole('button', { name: 'Refresh' }).click();
    await page.getByText('5 attempts: the receiver answered 503').waitFor();
    await page.getByRole('button', { name: 'Replay all that failed' }).click();
    await page.getByText('1 deliveries are sent again.').waitFor();
    assert.deepEqual(complaints, []);
  });

  test('fits a phone in every view, in the dark too, and every field has a label', async (t) => {
    for (const colorScheme of ['dark', 'light'] as const) {
      const { page, complaints } = await open(t, { viewport: { width: 360, height: 780 }, colorScheme });
      await enter(page);
      for (const view of ['Devices', 'Areas', 'Events', 'Settings']) {
        await show(page, view);
        await page.getByRole('heading', { name: view, exact: true }).waitFor();
        assert.equal(await page.evaluate('document.scrollingElement.scrollWidth'), 360, view);
        await page.locator('summary').first().click();
        assert.match((await page.locator('.curl pre').first().textContent()) ?? '', /^curl -s .*\/api\/v1\//);
        assert.equal(
          await page.evaluate(
            "[...document.querySelectorAll('input')].every((one) => one.labels.length > 0)",
          ),
          true,
        );
      }
      const background = await page.evaluate('getComputedStyle(document.documentElement).backgroundColor');
      assert.equal(background, colorScheme === 'dark' ? 'rgb(22, 24, 27)' : 'rgb(255, 255, 255)');
      assert.deepEqual(complaints, []);
    }
  });
});
