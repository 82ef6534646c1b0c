import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { focused, focusedName } from '../support/console/focused.ts';
import { openConsole, POD_ENV } from '../support/console/openedConsole.ts';
import { BUS, OWNER, VAN } from '../support/console/servedConsole.ts';
import { violationsIn } from '../support/console/violations.ts';
import { visitConsole } from '../support/console/visitor.ts';
import { callApi, logIn, PASSWORD } from '../support/http/application.ts';
import { CIRCLE } from '../support/http/areas.ts';
import { withoutBrowser } from '../support/http/browser.ts';
import { startPod } from '../support/pod.ts';
import { waitFor } from '../support/waitFor.ts';

const FAR = { latitude: 40, longitude: 10 };
const DEVICES = { [VAN]: ['--name', 'Van 12', '--plate', 'GA 731 KL'], [BUS]: ['--name', 'Bus 3'] };

describe('the console in a browser', { skip: withoutBrowser() }, () => {
  const opened = openConsole(DEVICES);

  test('loads from here alone, says what is wrong with a login, and forgets a session with its logout', async (t) => {
    const { page, complaints, logIn: enter } = await opened.visit(t);
    assert.deepEqual(complaints, []);
    await page.getByLabel('E-mail').fill(OWNER);
    await page.getByLabel('Password').fill('wrong');
    await page.keyboard.press('Enter');
    await page.getByText('the e-mail address or the password is wrong').waitFor();
    // The browser itself reports the rejected call that was provoked.
    assert.match(complaints.splice(0).join(), /^[^,]*status of 403[^,]*$/);
    await enter(OWNER);
    const token = String(await page.evaluate("sessionStorage.getItem('fleet-session')"));
    assert.match(token, /^fs_/);
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Password').waitFor();
    assert.equal((await callApi(opened.pod, 'GET', '/v1/devices', { token })).status, 403);
    assert.deepEqual(complaints, []);
  });

  test('shows devices as they move, finds them, and shows an entry as it happens, who is inside, and why', async (t) => {
    await opened.send(VAN, FAR);
    const { page, complaints, logIn: enter, show } = await opened.visit(t);
    await enter(OWNER);
    await show('Devices');
    const rows = page.locator('tbody tr');
    await waitFor(async () => (await rows.count()) === 2);
    await opened.send(VAN, { latitude: 40.12345, longitude: 10 });
    await page.getByText('40.12345, 10.00000').waitFor();
    for (const text of ['van', 'ga731', VAN.slice(-4)]) {
      await page.getByLabel('Search').fill(text);
      await waitFor(async () => /Van 12/.test((await rows.first().textContent()) ?? ''));
    }
    await page.getByLabel('Search').fill('nobody');
    await page.getByText('No device fits').waitFor();

    const token = await logIn(opened.pod, OWNER);
    const { name, center } = (await callApi(opened.pod, 'POST', '/v1/areas', { token, body: CIRCLE })).body
      .data;
    await show('Areas');
    await page.getByRole('button', { name }).click();
    await page.getByText('No device is inside').waitFor();
    await opened.send(VAN, { latitude: center.lat, longitude: center.lng });
    await page.getByLabel(`Who is in ${name}`).getByText('Van 12').waitFor();
    await show('Events');
    await page.getByRole('button', { name: new RegExp(`Why: .*entered ${name}`) }).click();
    await page.locator('.why').getByText('inside from').waitFor();
    await opened.send(VAN, FAR);
    await page.getByText(`left ${name}`).first().waitFor();
    assert.deepEqual(complaints, []);
  });

  test('continues when the pod is replaced, and misses nothing', async (t) => {
    const own = await startPod(opened.url, { t, env: POD_ENV });
    const { page, logIn: enter, show } = await visitConsole(t, opened.browser, own.api);
    await enter(OWNER);
    await show('Devices');
    await own.stop();
    await page.getByText('Line lost').waitFor();
    await opened.send(VAN, { latitude: 40.54321, longitude: 10 });
    await startPod(opened.url, { t, env: { ...POD_ENV, PORT: new URL(own.api).port } });
    await page.getByText('40.54321, 10.00000').waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
  });

  test('the keyboard alone leads from the login over a new area to the logout', async (t) => {
    const { page, complaints } = await opened.visit(t);
    const tabTo = async (name: string, key = 'Tab'): Promise<void> => {
      for (let presses = 0; presses < 60; presses++) {
        await page.keyboard.press(key);
        if ((await focusedName(page)).startsWith(name)) return;
      }
      assert.fail(`${key} does not lead to ${name}`);
    };
    await focused(page, 'E-mail');
    await page.keyboard.type(OWNER);
    await tabTo('Password');
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press('Enter');
    await page.getByText('Live', { exact: true }).waitFor();
    for (const button of ['Areas', 'New area']) {
      await tabTo(button);
      await page.keyboard.press('Enter');
    }
    await tabTo('Name');
    await page.keyboard.type('Gate');
    await tabTo('Centre');
    await page.keyboard.type('41.9, 12.5');
    await tabTo('Save');
    await page.keyboard.press('Enter');
    await page.getByText('Gate is saved.').waitFor();
    await focused(page, 'New area');
    await tabTo('Log out', 'Shift+Tab');
    await page.keyboard.press('Enter');
    await page.getByLabel('Password').waitFor();
    assert.deepEqual(complaints, []);
  });

  test('every view fits a telephone in the dark and a wide screen in the light, and axe finds nothing wrong', async (t) => {
    const { page, complaints, logIn: enter, show } = await opened.visit(t);
    const looksRight = async (view: string): Promise<void> => {
      for (const [colorScheme, width, color] of [
        ['dark', 360, 'rgb(22, 24, 27)'],
        ['light', 1_280, 'rgb(255, 255, 255)'],
      ] as const) {
        await page.setViewportSize({ width, height: 780 });
        await page.emulateMedia({ colorScheme });
        const seen = await page.evaluate(
          '[document.scrollingElement.scrollWidth, getComputedStyle(document.documentElement).backgroundColor]',
        );
        assert.deepEqual(seen, [width, color], view);
        assert.deepEqual(await violationsIn(page), [], `${view}, ${colorScheme}`);
      }
    };
    await looksRight('Login');
    await enter(OWNER);
    for (const view of ['Map', 'Devices', 'Areas', 'Events', 'Settings']) {
      await show(view);
      await page.getByRole('heading', { name: view, exact: true }).waitFor();
      if (view === 'Areas') await page.getByRole('button', { name: 'New area' }).click();
      await page.locator('summary').first().click();
      const curl = await page.locator('.curl pre').first().textContent();
      assert.match(curl ?? '', /^curl -s .*\/api\/v1\//);
      await looksRight(view);
    }
    assert.deepEqual(complaints, []);
  });
});
