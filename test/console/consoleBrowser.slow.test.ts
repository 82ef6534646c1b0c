import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { violationsIn } from '../support/console/violations.ts';
import { visitConsole } from '../support/console/visitor.ts';
import { logIn, makeOwner } from '../support/http/application.ts';
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

  const open = (t: TestContext, options: BrowserContextOptions = {}) =>
    visitConsole(t, browser, pod.api, options);

  test('loads from here alone, compressed, and says what is wrong with a login', async (t) => {
    const { page, complaints, loaded } = await open(t);
    const bytes = (await Promise.all(loaded)).reduce((sum, size) => sum + size, 0);
    assert.ok(bytes > 5_000 && bytes <= COMPRESSED_MAX_BYTES, `${bytes} bytes`);
    assert.deepEqual([...complaints], []);
    await page.getByLabel('E-mail').fill(OWNER);
    await page.getByLabel('Password').fill('wrong');
    await page.keyboard.press('Enter');
    await page.getByText('the e-mail address or the password is wrong').waitFor();
    // The browser itself reports the rejected call that was provoked.
    assert.deepEqual(
      complaints.filter((complaint) => !complaint.includes('status of 403')),
      [],
    );
  });

  test('shows devices as they move, finds them, and forgets the session with a logout', async (t) => {
    const { page, complaints, logIn: enter, show } = await open(t);
    await enter(OWNER);
    await show('Devices');
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
    const { page, complaints, logIn: enter, show } = await open(t);
    await enter(OWNER);
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
    await show('Areas');
    await page.getByRole('button', { name }).click();
    await page.getByText('No device is inside').waitFor();
    await send({ latitude: center.lat, longitude: center.lng });
    await page.getByLabel(`Who is in ${name}`).getByText('Van 12').waitFor();
    await show('Events');
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
    const { page, logIn: enter, show } = await visitConsole(t, browser, own.api);
    await enter(OWNER);
    await show('Devices');
    const port = new URL(own.api).port;
    await own.stop();
    await page.getByText('Line lost').waitFor();
    await send({ latitude: 40.54321, longitude: 10 });
    const next = await startPod(url, { t, env: { ...NO_LIMITS, ROLES: 'api', PORT: port } });
    assert.equal(new URL(next.api).port, port);
    await page.getByText('40.54321, 10.00000').waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
  });

  for (const colorScheme of ['dark', 'light'] as const)
    for (const width of [360, 1280])
      test(`fits ${width} px in every view, ${colorScheme}, and axe finds nothing wrong`, async (t) => {
        const viewport = { width, height: 780 };
        const { page, complaints, logIn: enter, show } = await open(t, { viewport, colorScheme });
        assert.deepEqual(await violationsIn(page), []);
        await enter(OWNER);
        for (const view of ['Map', 'Devices', 'Areas', 'Events', 'Settings']) {
          await show(view);
          await page.getByRole('heading', { name: view, exact: true }).waitFor();
          if (view === 'Areas') await page.getByRole('button', { name: 'New area' }).click();
          assert.equal(await page.evaluate('document.scrollingElement.scrollWidth'), width, view);
          await page.locator('summary').first().click();
          assert.match(
            (await page.locator('.curl pre').first().textContent()) ?? '',
            /^curl -s .*\/api\/v1\//,
          );
          assert.deepEqual(await violationsIn(page), [], view);
        }
        const background = await page.evaluate('getComputedStyle(document.documentElement).backgroundColor');
        assert.equal(background, colorScheme === 'dark' ? 'rgb(22, 24, 27)' : 'rgb(255, 255, 255)');
        assert.deepEqual(complaints, []);
      });
});
