import assert from 'node:assert/strict';
import { readFile } from 'node:fs/promises';
import { describe, test } from 'node:test';
import type { BrowserContext, Page, Route } from 'playwright-core';
import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import { dateOf, fieldText } from '../../src/console/page/format.ts';
import { focused, focusedName } from '../support/console/focused.ts';
import { BUS, OWNER, openConsole, POD_ENV, VAN } from '../support/console/openedConsole.ts';
import { violationsIn } from '../support/console/violations.ts';
import { type Visitor, visitConsole } from '../support/console/visitor.ts';
import { callApi, logIn, makeOwner, PASSWORD } from '../support/http/application.ts';
import { CIRCLE } from '../support/http/areas.ts';
import { newContext, withoutBrowser } from '../support/http/browser.ts';
import { startPod } from '../support/pod.ts';
import { findFreePort } from '../support/ports.ts';
import { waitFor, waitForEqual } from '../support/waitFor.ts';

const FAR = { latitude: 40, longitude: 10 };
const MINUTE_MS = 60_000;
const DAY_MS = 86_400_000;
const LIMIT = 'rate limit exceeded: 1000 requests per key per hour';
/** More than a browser opens connections to a host, which are fewer than a session may have streams. */
const TABS = 7;
const DEVICES = {
  [VAN]: ['--name', 'Van 12', '--plate', 'GA 731 KL', '--groups', 'north'],
  [BUS]: ['--name', 'Bus 3', '--groups', 'south,cold'],
};

describe('the console in a browser', { skip: withoutBrowser() }, () => {
  const opened = openConsole(DEVICES);
  let withClock: Promise<Visitor> | null = null;

  /** A person whose browser has a clock that tests set; two tests share it. */
  async function visitWithClock(): Promise<Visitor> {
    const isFirst = withClock === null;
    withClock ??= visitConsole(null, opened.browser, opened.pod.api);
    const visitor = await withClock;
    if (isFirst) await visitor.page.clock.install();
    else await visitor.startAnew();
    return visitor;
  }

  test('loads from here alone, says what is wrong with a login, and forgets a session with its logout', async () => {
    const { page, complaints, logIn: enter } = await opened.visitAgain();
    assert.deepEqual(complaints, []);
    await page.getByLabel('E-mail').fill(OWNER);
    await page.getByLabel('Password').fill('wrong');
    await page.keyboard.press('Enter');
    await page.getByText('the e-mail address or the password is wrong').waitFor();
    // The browser itself reports the rejected call that was provoked.
    await waitFor(() => complaints.length > 0, 'the browser does not report the rejected login');
    assert.match(complaints.splice(0).join(), /^[^,]*status of 403[^,]*$/);
    await enter(OWNER);
    const token = String(await page.evaluate("sessionStorage.getItem('fleet-session')"));
    assert.match(token, /^fs_/);
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Password').waitFor();
    assert.equal((await callApi(opened.pod, 'GET', '/v1/devices', { token })).status, 403);
    assert.equal(await page.getByText('Your session').count(), 0);
    await focused(page, 'E-mail');
    assert.deepEqual(complaints, []);
    await enter(OWNER);
    const another = String(await page.evaluate("sessionStorage.getItem('fleet-session')"));
    await callApi(opened.pod, 'DELETE', '/v1/session', { token: another });
    await page.getByText('Your session was ended: by a logout').waitFor();
  });

  test('a browser that cannot draw the map has the lists, and a silent vehicle is offline there after ten minutes', async () => {
    await opened.send(VAN, FAR);
    const { page, complaints, logIn: enter, show } = await visitWithClock();
    await enter(OWNER);
    await page.getByText('This browser cannot draw the map').waitFor();
    await page.getByText('2 vehicles').waitFor();
    const listed = () =>
      page.locator('.row').evaluateAll((rows) => rows.map((row) => row.firstChild?.textContent));
    await waitForEqual(listed, ['Bus 3', 'Van 12'], 'the list');
    await page.getByLabel('Search').fill('van');
    await page.getByRole('button', { name: 'Van 12' }).click();
    await page.getByLabel('Chosen: Van 12').waitFor();
    await page.getByRole('button', { name: 'Close' }).press('Enter');
    await focused(page, 'Map');
    await page.getByRole('button', { name: 'Bus 3' }).press('Enter');
    await focused(page, 'Chosen: Bus 3');
    await show('Devices');
    await page.getByText('2 of 2 devices').waitFor();
    const row = page.getByRole('row', { name: 'Bus 3' });
    let latitude = 41;
    // On a slow machine ten minutes may be over when a point is shown.
    await waitFor(async () => {
      latitude += 0.01;
      await opened.send(BUS, { latitude, longitude: 10 }, Date.now() - 10 * MINUTE_MS + 21_000);
      await row.getByText(latitude.toFixed(5)).waitFor();
      return /moving/.test((await row.textContent()) ?? '');
    }, 'Bus 3 is not moving');
    await page.clock.fastForward(23_000);
    await row.getByText('offline').waitFor();
    await page.getByRole('row', { name: 'Van 12' }).getByText('moving').waitFor();
    assert.deepEqual(complaints, []);
  });

  test('what a limit refuses is said and asked for again: earlier events, and the stream, which is not "lost"', async () => {
    const { page, logIn: enter, show } = await visitWithClock();
    const asked = Promise.withResolvers<Route>();
    await page.route('**/api/v1/events?*', (route) => asked.resolve(route));
    await enter(OWNER);
    await show('Events');
    await page.getByText('Loading…').waitFor();
    assert.equal(await page.getByText('Nothing has happened yet').count(), 0, 'nobody knows yet');
    await refuse(await asked.promise);
    await page.getByText(`Earlier events could not be read: ${LIMIT}, until `).waitFor();
    assert.equal(await page.getByText('Nothing has happened yet').count(), 0);
    await page.unroute('**/api/v1/events?*');
    await page.clock.fastForward(21_000);
    await page.getByText('Nothing has happened yet').waitFor();

    await page.route('**/api/v1/usage', refuse);
    await show('Settings');
    const usage = page.getByRole('region', { name: 'Usage' });
    await usage.getByText(LIMIT).waitFor();
    assert.equal(await usage.getByText(LIMIT).count(), 1, 'once, and not in each line');
    await page.unroute('**/api/v1/usage');
    await show('Events');

    await page.route('**/api/v1/stream*', refuse);
    const inAnHour = () =>
      page.evaluate<string>('new Date(Date.now() + 3_600_000).toLocaleTimeString("en-GB")');
    const earliest = await inAnHour();
    await page.reload();
    const said = page.getByText(`Not live: ${LIMIT}, until `);
    await said.waitFor();
    const [, until = '', again = ''] =
      /until (.*) at the latest\. Next try at (.*)\./.exec((await said.textContent()) ?? '') ?? [];
    const latest = await inAnHour();
    assert.ok(
      secondsFrom(earliest, until) + secondsFrom(until, latest) === secondsFrom(earliest, latest),
      `${until} is not between ${earliest} and ${latest}`,
    );
    await page.clock.fastForward(21_000);
    await page.getByText(`Next try at ${again}.`).waitFor({ state: 'detached' });
    assert.ok((await said.textContent())?.includes(`until ${until} at the latest`), 'still the same window');
    await page.unroute('**/api/v1/stream*');
    await page.clock.fastForward(21_000);
    await page.getByText('Live', { exact: true }).waitFor();
  });

  test('shows devices as they move, finds them, and shows an entry as it happens, who is inside, and why', async () => {
    await opened.send(VAN, FAR);
    const { page, complaints, logIn: enter, show } = await opened.visitAgain();
    await enter(OWNER);
    await show('Devices');
    const rows = page.locator('tbody tr');
    await waitForEqual(() => rows.count(), 2, 'the number of rows');
    await opened.send(VAN, { latitude: 40.12345, longitude: 10 });
    await page.getByText('40.12345, 10.00000').waitFor();
    for (const text of ['van', 'ga731', VAN.slice(-4)]) {
      await page.getByLabel('Search').fill(text);
      await waitFor(
        async () => /Van 12/.test((await rows.first().textContent()) ?? ''),
        `"${text}" does not find Van 12`,
      );
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
    await page.locator('.why > p time').first().waitFor();
    assert.doesNotMatch(
      (await page.locator('.why').textContent()) ?? '',
      /\dT\d\d:/,
      'its times are written like all others',
    );
    await opened.send(VAN, FAR);
    await page.getByText(`left ${name}`).first().waitFor();
    assert.deepEqual(complaints, []);
  });

  test('a long list has the rows in sight alone, is counted for readers, and keeps the focus while it is scrolled', async () => {
    const count = 2_000;
    const nameOf = (n: number): string => `Car ${String(n).padStart(4, '0')}`;
    const many = Array.from({ length: count }, (_, n) => ({ imei: simulatedImei(n), name: nameOf(n + 1) }));
    await makeOwner(opened.admin, 'many@example.com');
    await opened.admin.importDevices('many@example.com', many);
    const { page, complaints, logIn: enter, show } = await opened.visitAgain();
    await enter('many@example.com');
    const inPage = (row: string) =>
      waitFor(async () => {
        const rows = await page.locator(row).count();
        return rows > 5 && rows < 100;
      }, `there are none, or not only those in sight, of ${row}`);
    await page.getByText('2 000 vehicles').waitFor();
    await inPage('main li');
    await page.locator('main').evaluate((panel) => panel.scrollTo(0, panel.scrollHeight));
    const last = page.getByRole('listitem').filter({ hasText: nameOf(count) });
    await last.waitFor();
    assert.deepEqual(
      [await last.getAttribute('aria-posinset'), await last.getAttribute('aria-setsize')],
      [String(count), String(count)],
    );
    await inPage('main li');
    await show('Areas');
    await page.getByRole('button', { name: 'New area' }).waitFor();
    assert.equal(await page.evaluate("document.querySelector('main').scrollTop"), 0, 'another view');

    await show('Devices');
    await page.locator(`table[aria-rowcount="${count + 1}"]`).waitFor();
    await page.getByRole('link', { name: nameOf(1) }).focus();
    for (const [key, at] of [
      ['ArrowDown', 2],
      ['PageDown', 12],
      ['ArrowUp', 11],
      ['End', count],
      ['Home', 1],
      ['ArrowDown', 2],
    ] as const) {
      await page.keyboard.press(key);
      await focused(page, nameOf(at));
    }
    await page.evaluate('scrollTo(0, document.documentElement.scrollHeight)');
    const end = page.locator(`tr[aria-rowindex="${count + 1}"]`);
    await end.waitFor();
    await inPage('tbody tr');
    assert.equal(await focusedName(page), nameOf(2), 'the focus is kept');
    assert.deepEqual(await violationsIn(page), [], 'a long list');
    await page.keyboard.press('ArrowDown');
    await focused(page, nameOf(3));
    await waitFor(
      () => page.evaluate('document.activeElement.getBoundingClientRect().top > 0'),
      'what has the focus is out of sight',
    );
    await page.keyboard.press('Enter');
    await page.getByLabel(`Chosen: ${nameOf(3)}`).waitFor();
    assert.deepEqual(complaints, []);
  });

  test('filters hide and count on every view, stand in the address, and are gone for the next person', async () => {
    await opened.send(VAN, FAR);
    const { page, complaints, logIn: enter, show } = await opened.visitAgain();
    await page.goto(`${opened.pod.api}/console#devices?group=cold`);
    await enter(OWNER);
    await page.getByText('1 of 2 devices').waitFor();
    await page.getByRole('row', { name: 'Bus 3' }).waitFor();
    const status = page.getByRole('group', { name: 'Status' });
    await status.getByRole('button', { name: 'moving 0' }).waitFor();
    await page.getByLabel('Group').fill('north');
    await status.getByRole('button', { name: 'moving 1' }).click();
    await page.getByRole('row', { name: 'Van 12' }).waitFor();
    await waitFor(() => page.url().endsWith('#devices?status=moving&group=north'));
    await page.reload();
    await page.getByText('1 of 2 devices').waitFor();
    assert.deepEqual(await violationsIn(page), [], 'filters in use');
    await show('Map');
    await waitFor(() => page.url().endsWith('#map?status=moving&group=north'));
    await status.getByRole('button', { name: 'moving 1', pressed: true }).click();
    await status.getByRole('button', { name: 'parked 0' }).click();
    await page.getByLabel('Search').fill('van');
    await page.getByText('0 found').waitFor();
    await page.getByRole('button', { name: 'Log out' }).click();
    await enter(OWNER);
    await show('Devices');
    await page.getByText('2 of 2 devices').waitFor();
    assert.deepEqual(complaints, []);
  });

  test('a link leads to a vehicle, an area or an event, and says so of those that are not there', async () => {
    await opened.send(VAN, FAR);
    const token = await logIn(opened.pod, OWNER);
    const body = { ...CIRCLE, name: 'Yard' };
    const { id, center } = (await callApi(opened.pod, 'POST', '/v1/areas', { token, body })).body.data;
    await opened.send(VAN, { latitude: center.lat, longitude: center.lng });
    const { page, complaints, logIn: enter, show } = await opened.visitAgain();
    await page.goto(`${opened.pod.api}/console#map/${VAN}`);
    await enter(OWNER);
    await page.getByLabel('Chosen: Van 12').waitFor();
    await show('Devices');
    await page.getByRole('link', { name: 'Bus 3' }).click();
    await page.getByLabel('Chosen: Bus 3').waitFor();
    await waitFor(() => page.url().endsWith(`#map/${BUS}`));
    await page.goto(`${opened.pod.api}/console#area/${id}`);
    await page.getByLabel('Who is in Yard').getByText('Van 12').waitFor();
    await show('Events');
    const why = page.getByRole('button', { name: 'Why: Van 12 entered Yard' });
    await why.click();
    await waitFor(() => /#event\/\d+$/.test(page.url()));
    const event = page.url();
    await show('Devices');
    await page.goto(event);
    await page.getByLabel('Why: Van 12 entered Yard').locator('.why').waitFor();
    await page.goto(`${opened.pod.api}/console#event/999999999`);
    await page.getByText('Event 999999999 is not among the').waitFor();
    await page.goto(`${opened.pod.api}/console#events?type=geofence_exit&area=${id}`);
    await page.getByText('No event fits').waitFor();
    await page.getByLabel('Type').selectOption('Entries');
    await waitFor(() => page.url().endsWith(`#events?type=geofence_enter&area=${id}`));
    // The answer is below the fold of a low window, and comes into view.
    const size = page.viewportSize() as { width: number; height: number };
    const low = 420;
    await page.setViewportSize({ ...size, height: low });
    await why.click();
    const answer = page.getByLabel('Why: Van 12 entered Yard').locator('.why');
    await waitFor(async () => {
      const box = await answer.boundingBox();
      return box !== null && box.height > 50 && box.y + box.height <= low;
    }, 'the answer is not in view');
    await page.setViewportSize(size);
    await page.getByLabel('Vehicle').fill('bus');
    await page.keyboard.press('Enter');
    await page.getByText('No event fits').waitFor();
    await waitFor(() => page.url().includes(`device=${BUS}`));
    assert.deepEqual(await violationsIn(page), [], 'filters of events');
    await page.goto(`${opened.pod.api}/console#map/490154203237518`);
    await page.getByText('No vehicle of this account has the IMEI 490154203237518').waitFor();
    await page.getByRole('button', { name: 'Log out' }).click();
    await waitFor(() => page.url().endsWith('#map'));
    assert.deepEqual(complaints, []);
  });

  test('a day of a vehicle has its sums, its trips, its speed at each moment, and a file of its points', async () => {
    const noon = new Date(Date.now() - 2 * DAY_MS); // shortly after midnight, other tests send points of yesterday
    noon.setHours(12, 0, 0, 0);
    for (let n = 0; n <= 20; n++)
      await opened.send(
        BUS,
        { latitude: 41, longitude: 12 + n / 1_000, speed_kmh: 20 + n },
        noon.getTime() + n * 10_000,
      );
    const { page, complaints, logIn: enter, show } = await opened.visitAgain();
    await page.goto(`${opened.pod.api}/console#map/${BUS}`);
    await enter(OWNER);
    const shown = page.getByLabel('A day');
    await shown.getByLabel('Day').fill(dateOf(noon.getTime()));
    await shown.getByText('40 km/h').first().waitFor(); // the highest
    await shown.getByText('1 trip').waitFor();
    await shown
      .locator('.sums')
      .filter({ hasText: /Driven\s*1\.7 km/ })
      .waitFor();
    await shown.getByLabel('Moment of the day').press('End');
    await shown.getByRole('status').filter({ hasText: ', 40 km/h' }).waitFor();
    await waitFor(() => new RegExp(`#map/${BUS}/\\d{4}-\\d\\d-\\d\\d$`).test(page.url()));
    const download = page.waitForEvent('download');
    await shown.getByRole('button', { name: 'CSV' }).click();
    const file = await (await download).path();
    assert.equal((await readFile(file, 'utf8')).trim().split('\n').length, 22, 'a header, and 21 points');
    assert.deepEqual(await violationsIn(page), []);
    await shown.getByRole('button', { name: 'Last hours' }).click();
    await page.getByLabel('Trail of the last').waitFor();

    await show('Settings');
    await page.getByLabel('Ways and speeds').selectOption('Miles');
    await page.getByLabel('Time zone').selectOption('Asia/Tokyo');
    await page.reload();
    await show('Devices');
    const row = page.getByRole('row', { name: 'Bus 3' });
    await row.getByText(/^\d+ mph$/).waitFor();
    await row.locator('time[title$="(Asia/Tokyo)"]').waitFor();
    assert.deepEqual(complaints, []);
  });

  test('says who was in an area in a time, which the address keeps, and what the service refuses', async () => {
    const fromMs = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS - 3 * DAY_MS;
    const at = (minute: number) => fromMs + minute * MINUTE_MS;
    for (let n = 0; n <= 6; n++)
      await opened.send(BUS, { latitude: n === 6 ? 31 : 30, longitude: 20 }, at(10 + n));
    const token = await logIn(opened.pod, OWNER);
    const hall = { name: 'Hall', type: 'circle', center: { lat: 30, lng: 20 }, radius_m: 500 };
    const { id } = (await callApi(opened.pod, 'POST', '/v1/areas', { token, body: hall })).body.data;
    const { page, complaints, logIn: enter } = await opened.visitAgain();
    const isoAt = (minute: number) => new Date(at(minute)).toISOString();
    await page.goto(`${opened.pod.api}/console#area/${id}?from=${isoAt(0)}&to=${isoAt(12)}`);
    await enter(OWNER);
    const panel = page.getByRole('region', { name: 'Who was in Hall?' });
    await panel.getByText(/^1 vehicle between/).waitFor();
    await panel.getByText('2 min', { exact: true }).waitFor();
    await panel.getByLabel('To').fill(fieldText(at(60)));
    await panel.getByRole('button', { name: 'Look' }).click();
    await panel.getByText('5 min', { exact: true }).waitFor();
    await panel.getByText(', 6 points').waitFor();
    await waitFor(() =>
      decodeURIComponent(page.url()).endsWith(`#area/${id}?from=${isoAt(0)}&to=${isoAt(60)}`),
    );
    assert.deepEqual(await violationsIn(page), [], 'who was here');
    await panel.getByLabel('From').fill(fieldText(at(-40 * 24 * 60)));
    await panel.getByRole('button', { name: 'Look' }).click();
    await panel.getByText('from and to are more than 31 days apart; narrow them').waitFor();
    await panel.getByLabel('From').fill(fieldText(at(30)));
    await panel.getByRole('button', { name: 'Look' }).click();
    await panel.getByText(/^No vehicle was here between/).waitFor();
    await panel.getByLabel('From').fill(fieldText(at(11)));
    await panel.getByRole('button', { name: 'Look' }).click();
    await panel.getByRole('link', { name: 'Bus 3' }).click();
    await page.getByLabel('Chosen: Bus 3').getByText('1 trip').waitFor();
    assert.deepEqual(
      complaints.filter((line) => !line.includes('status of 400')),
      [],
    );
  });

  test('continues when the pod is replaced, and misses nothing', async (t) => {
    const env = { ...POD_ENV, PORT: String(await findFreePort()) };
    const own = await startPod(opened.url, { t, env });
    const { page, logIn: enter, show } = await visitConsole(t, opened.browser, own.api);
    await enter(OWNER);
    await show('Devices');
    await own.stop();
    await page.getByText('Line lost').waitFor();
    await opened.send(VAN, { latitude: 40.54321, longitude: 10 });
    await startPod(opened.url, { t, env });
    await page.getByText('40.54321, 10.00000').waitFor();
    await page.getByText('Live', { exact: true }).waitFor();
  });

  test('the keyboard alone leads from the login over a new area to the logout', async () => {
    const { page, complaints } = await opened.visitAgain();
    await page.reload(); // a page puts the focus into its first field once
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
    await tabTo('Areas');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'New area' }).waitFor();
    await tabTo('New area');
    await page.keyboard.press('Enter');
    await page.getByRole('form', { name: 'Area' }).waitFor();
    await tabTo('Name');
    await page.keyboard.type('Gate');
    await tabTo('Centre');
    await page.keyboard.type('41.9, 12.5');
    await tabTo('Save');
    await page.keyboard.press('Enter');
    await page.getByText('Gate is saved.').waitFor();
    await focused(page, 'New area');
    for (const [text, shown] of [
      ['gat', 'Who is in Gate'],
      ['ga731', 'Chosen: Van 12'],
    ] as const) {
      await page.keyboard.press('Control+k');
      await focused(page, 'A vehicle, an area or a view');
      await page.keyboard.type(text);
      await waitForEqual(() => page.getByRole('option').count(), 1, `what is found by "${text}"`);
      assert.deepEqual(await violationsIn(page), [], 'the search over everything');
      await page.keyboard.press('Enter');
      await page.getByLabel(shown).waitFor();
    }
    await page.keyboard.press('Control+k');
    await focused(page, 'A vehicle, an area or a view');
    await page.keyboard.type('gat');
    await page.keyboard.press('Escape');
    await page.getByRole('dialog').waitFor({ state: 'detached' });
    await tabTo('Log out', 'Shift+Tab');
    await page.keyboard.press('Enter');
    await page.getByLabel('Password').waitFor();
    assert.deepEqual(complaints, []);
  });

  test('every view fits a telephone in the dark and a wide screen in the light, and axe finds nothing wrong', async () => {
    const { page, complaints, logIn: enter, show } = await opened.visitAgain();
    const looksRight = async (view: string): Promise<void> => {
      for (const [colorScheme, width, color] of [
        ['dark', 360, 'rgb(14, 18, 22)'],
        ['light', 1_280, 'rgb(244, 246, 248)'],
      ] as const) {
        await page.setViewportSize({ width, height: 780 });
        await page.emulateMedia({ colorScheme });
        const seen = () =>
          page.evaluate<[number, string]>(
            '[document.scrollingElement.scrollWidth, getComputedStyle(document.documentElement).backgroundColor]',
          );
        await waitForEqual(seen, [width, color], view);
        // Nothing but colours depends on the scheme.
        const rules = colorScheme === 'dark' ? undefined : ['color-contrast'];
        assert.deepEqual(await violationsIn(page, rules), [], `${view}, ${colorScheme}`);
      }
    };
    await looksRight('Login');
    await enter(OWNER);
    for (const view of ['Map', 'Devices', 'Areas', 'Events', 'Settings']) {
      await show(view);
      await page.getByRole('heading', { name: view, exact: true }).waitFor();
      if (view === 'Areas') {
        await page.getByRole('button', { name: 'New area' }).click();
        await page.getByRole('form', { name: 'Area' }).waitFor();
      }
      if (view === 'Settings')
        for (const fold of ['New key', 'New webhook', 'New share'])
          await page.locator('summary', { hasText: fold }).waitFor();
      for (const hidden of await page.locator('summary').all()) await hidden.click();
      const toggle = page.getByRole('button', { name: 'API', exact: true });
      await toggle.waitFor();
      assert.equal(await page.getByLabel('As curl').count(), 0, 'unless a person asks for it');
      await toggle.click();
      for (const [label, call] of [
        ['As curl', /^curl -s .*\/api\/v1\//],
        ['In TypeScript', /await fetch\(/],
      ] as const)
        await page.getByLabel(label).filter({ hasText: call }).first().waitFor();
      await looksRight(view);
      await toggle.click();
    }
    assert.deepEqual(complaints, []);
  });

  test('more tabs of a session than a browser opens connections are live, and stay so when tabs close', async (t) => {
    const token = await logIn(opened.pod, OWNER);
    const context = await newContext(opened.browser);
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

  test('a webhook that was made is counted beside it; one that the service has paused says why, and is resumed', async () => {
    await opened.admin.run('key:create', '--email', OWNER, '--scopes', 'read_devices');
    const { page, logIn: enter, show } = await opened.visitAgain();
    await enter(OWNER);
    await show('Settings');
    await page.getByRole('row', { name: /^Webhooks 0 100$/ }).waitFor();
    await page.getByRole('button', { name: /^Change fk_/ }).waitFor(); // it has no name
    await page.route('**/api/v1/webhooks?limit=200', async (route) => {
      const response = await route.fetch();
      const { data, meta } = await response.json();
      const paused = { reason: 'failing', since: '2026-03-02T08:40:00.000Z' };
      await route.fulfill({
        response,
        json: { data: data.map((webhook: object) => ({ ...webhook, paused })), meta },
      });
    });
    await page.locator('summary', { hasText: 'New webhook' }).click();
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

  test('on a telephone the map stays in sight of a new area, also held across, and the area is not made twice when the answer is lost', async () => {
    const { page, logIn: enter, show } = await opened.visitAgain();
    await page.setViewportSize({ width: 360, height: 780 });
    await enter(OWNER);
    await show('Areas');
    await page.getByRole('button', { name: 'New area' }).click();
    const form = page.getByRole('form', { name: 'Area' });
    for (const field of ['Name', 'Minimum stay in seconds']) {
      await form.getByLabel(field).click();
      let seen = '';
      await waitFor(
        async () => {
          const [bar, sheet, input] = [
            await page.getByRole('search').boundingBox(),
            await page.locator('main').boundingBox(),
            await form.getByLabel(field).boundingBox(),
          ];
          if (bar === null || sheet === null || input === null) return false;
          const freePx = sheet.y - bar.y - bar.height;
          seen = `${freePx} px of the map below ${bar.y} are in sight, the field is at ${input.y} in a sheet from ${sheet.y}`;
          const isMapSeen = bar.y >= 0 && freePx > 180;
          return isMapSeen && input.y >= sheet.y && input.y + input.height <= 781;
        },
        () => `${field}: ${seen}`,
      );
    }

    // Held across, it has no height for a sheet and for two lines of links: the panel is beside the map.
    await page.setViewportSize({ width: 667, height: 375 });
    await waitFor(async () => {
      const [links, panel] = [
        await page.getByRole('navigation').boundingBox(),
        await page.locator('main').boundingBox(),
      ];
      return links !== null && panel !== null && links.height < 45 && panel.x > 667 / 2 && panel.y < 75;
    }, 'the panel is not beside the map of a telephone that is held across');
    await page.setViewportSize({ width: 360, height: 780 });

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
    const { data } = (await callApi(opened.pod, 'GET', '/v1/areas', { token })).body;
    assert.equal(data.filter(({ name }: { name: string }) => name === 'Quay').length, 1);
  });
});

const isList = (url: URL): boolean => url.pathname === '/api/v1/areas';

/** The page may have given up the request. */
const refuse = (route: Route): Promise<void> =>
  route
    .fulfill({ status: 429, json: { error: { code: 'TOO_MANY_REQUESTS', message: LIMIT } } })
    .catch(() => undefined);

/** From one time of a day, as the browser writes them, to the next time that it is the other. */
function secondsFrom(a: string, b: string): number {
  return ((dayMs(b) - dayMs(a) + DAY_MS) % DAY_MS) / 1_000;
}

function dayMs(time: string): number {
  return Date.parse(`2026-01-01 ${time.replaceAll(/\s/g, ' ')}`);
}
