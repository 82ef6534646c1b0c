import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { createHmac } from 'node:crypto';
import { describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import type { Locator, Page } from 'playwright-core';
import { fieldText } from '../../src/console/page/format.ts';
import { focused } from '../support/console/focused.ts';
import { BUS, OWNER, openConsole, VAN } from '../support/console/openedConsole.ts';
import { violationsIn } from '../support/console/violations.ts';
import type { Visitor } from '../support/console/visitor.ts';
import { withoutBrowser } from '../support/http/browser.ts';
import { waitFor, waitForEqual } from '../support/waitFor.ts';
import { startReceiver } from '../support/webhooks/receiver.ts';
import { webhookEnv } from '../support/webhooks/webhooks.ts';

const DAY_MS = 86_400_000;
const MINUTE_MS = 60_000;
const INSIDE = { latitude: 41.905, longitude: 12.455 };
const OUTSIDE = { latitude: 41.8, longitude: 12.4 };
const BOW = '41.9, 12.45\n41.91, 12.46\n41.9, 12.46\n41.91, 12.45';
const SQUARE = '41.9, 12.45\n41.9, 12.46\n41.91, 12.46\n41.91, 12.45';
/** What the browser itself reports of refusals, which are provoked. */
const PROVOKED = /status of 4(00|22)/;

describe('a walk through the console', { skip: withoutBrowser() }, () => {
  const opened = openConsole(
    { [VAN]: ['--name', 'Van 12', '--plate', 'GA 731 KL'], [BUS]: ['--name', 'Bus 3'] },
    { env: webhookEnv(60_000) },
  );
  const send = (imei: string, ms: number, place: object) => opened.send(imei, place, ms);

  test('all that a person does in a day, from login to logout', async (t) => {
    const then = Date.now() - 3 * DAY_MS;
    for (const [index, place] of [OUTSIDE, INSIDE, OUTSIDE].entries())
      await send(VAN, then + index * MINUTE_MS, place);
    await send(BUS, then, OUTSIDE);
    const visitor = await opened.visit(t);
    const { page, complaints } = visitor;
    await visitor.logIn(OWNER);

    await makeArea(visitor);
    await visitor.show('Events');
    await page.getByText('Nothing has happened yet').waitFor();
    await send(VAN, Date.now() - MINUTE_MS, INSIDE);
    await page.getByText(/entered Yard/).waitFor();

    await visitor.show('Areas');
    await page.getByRole('button', { name: 'Why did it not report?' }).click();
    const why = page.getByRole('form', { name: 'Why' });
    const device = why.getByLabel('Device');
    const offered = why.locator('datalist option');
    const texts = () => offered.evaluateAll((all) => all.map(({ outerHTML }) => outerHTML).join());
    await device.fill('van');
    await waitFor(async () => /Van 12.*GA 731 KL/.test(await texts()), 'a vehicle is not offered');
    assert.doesNotMatch(await texts(), /\d{8}/, 'an IMEI is offered that nobody asked for');
    await device.fill('bus');
    await why.getByLabel('From').fill(fieldText(then - MINUTE_MS));
    await why.getByRole('button', { name: 'Explain' }).click();
    await page.locator('.why').getByText('area did not exist').waitFor();
    await device.fill('van');
    await why.getByRole('button', { name: 'Explain' }).click();
    await page.getByRole('img', { name: /Time line from .*: 1 visit, 1 gap/ }).waitFor();
    assert.deepEqual(await violationsIn(page), [], 'an explanation');

    await useKey(visitor);
    await useWebhook(t, visitor);
    await visitor.show('Events');
    await visitor.show('Settings');
    await page.getByRole('row', { name: /^Areas 1 20\s000$/ }).waitFor();
    await page.getByRole('row', { name: /^Deliveries .* 2 delivered, 0 given up/ }).waitFor();
    await visitor.show('Areas');
    await page.getByRole('button', { name: 'New area' }).click();
    await page.getByRole('button', { name: 'Log out' }).click();
    await page.getByLabel('Password').waitFor();
    await visitor.logIn(OWNER);
    await visitor.show('Areas');
    await page.getByRole('button', { name: 'New area' }).waitFor();
    assert.equal(await page.getByRole('form', { name: 'Area' }).count(), 0, 'a draft outlives its session');
    assert.deepEqual(
      complaints.filter((complaint) => !PROVOKED.test(complaint)),
      [],
    );
  });

  async function makeArea({ page, show }: Visitor): Promise<void> {
    await show('Areas');
    await page.getByText('There are no areas yet').waitFor();
    await page.getByRole('button', { name: 'New area' }).click();
    const form = page.getByRole('form', { name: 'Area' });
    await form.getByLabel('Shape').selectOption('Polygon');
    await form.getByLabel('Points as').fill(BOW);
    await form.getByRole('button', { name: 'Save' }).click();
    const name = form.getByLabel('Name');
    await form.getByText('name is required').waitFor();
    await waitFor(
      () => name.evaluate((field) => field.ownerDocument.activeElement === field),
      'the first mistake does not have the focus',
    );
    await waitFor(async () => {
      const described = await form.getByLabel('Points as').getAttribute('aria-describedby');
      const texts = await page.locator(`[id="${described}"]`).allTextContents();
      return /cross/.test(texts.join());
    }, 'the mistake of the points does not describe their field');
    assert.deepEqual(await violationsIn(page), [], 'a form with mistakes');
    await name.fill('Yard');
    await form.getByLabel('Points as').fill(SQUARE);
    await form.getByRole('button', { name: 'Try on last week' }).click();
    await form.getByText('1 entry and 1 exit of 1 device in 4 points').waitFor();
    await chooseDwell(page, form);
    await form.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Yard is saved.').waitFor();

    await page.getByRole('button', { name: 'Yard' }).click();
    await page.getByRole('button', { name: 'Edit the area' }).click();
    await form.getByLabel('Minimum stay in seconds').fill('60');
    await form.getByRole('button', { name: 'Try on last week' }).click();
    await form.getByText('0 events are the same, 0 new, 2 gone').waitFor();
    await page.keyboard.press('Escape');
    await form.waitFor({ state: 'detached' });
    await focused(page, 'Edit the area');
  }

  /** Moves the slider below the picture, and takes what it shows into the form and back. */
  async function chooseDwell(page: Page, form: Locator): Promise<void> {
    const tried = form.getByLabel('Minimum stays to compare');
    await tried.fill('a minute');
    await form.getByRole('button', { name: 'Try on last month' }).click();
    await form.getByText('at most 9 whole numbers from 0 to 86400').waitFor();
    await tried.fill('60, 600');
    await form.getByRole('button', { name: 'Try on last month' }).click();
    await form
      .getByRole('img', { name: /stay\. 0 s: 1 entry, 1 exit; 1 min: 0 entries, 0 exits; 10 min: / })
      .waitFor();
    const slider = form.getByLabel('Minimum stay', { exact: true });
    await slider.press('ArrowRight');
    await form.getByText('Against 0 s, as the form has it: 2 gone, 0 new.').waitFor();
    const gone = form.getByRole('list', { name: 'Gone' }).getByRole('listitem');
    await waitForEqual(() => gone.count(), 2, 'the events that are gone');
    await form.getByText('All of them as a table').click();
    await form.getByRole('row', { name: '10 min 0 0 0' }).waitFor();
    assert.deepEqual(await violationsIn(page), [], 'an area that was tried');
    await form.getByRole('button', { name: 'Take 1 min as minimum stay' }).click();
    const dwell = form.getByLabel('Minimum stay in seconds');
    await waitForEqual(() => dwell.inputValue(), '60', 'the minimum stay');
    await form.getByText('1 min: 0 entries, 0 exits, as the form has it.').waitFor();
    await slider.press('Home');
    await form.getByText('Against 1 min, as the form has it: 0 gone, 2 new.').waitFor();
    await dwell.fill('7');
    await form.getByText('The draft has changed since').waitFor();
    await dwell.fill('0');
    await slider.waitFor();
  }

  async function useKey({ page, show }: Visitor): Promise<void> {
    await show('Settings');
    await page.locator('summary', { hasText: 'New key' }).click();
    const form = page.getByRole('form', { name: 'New key' });
    await form.getByLabel('Name').fill('Depot screen');
    await form.getByLabel('Only from').fill('nowhere');
    await form.getByRole('button').click();
    await page.locator('[name="allowlist"][aria-invalid="true"]').waitFor();
    await form.getByLabel('read_devices', { exact: true }).check();
    await form.getByLabel('Only from').fill('127.0.0.0/8');
    await form.getByRole('button').click();
    const key = (await page.locator('.secret code').textContent()) ?? '';
    const pasted = (await page.getByLabel('How it is used').textContent()) ?? '';
    assert.match((await promisify(execFile)('sh', ['-c', pasted])).stdout, /Van 12/);
    const get = async (path: string): Promise<number> => (await opened.pod.get(`/api/v3${path}`, key)).status;
    assert.equal(await get('/events'), 403);
    await page.getByRole('button', { name: 'Change Depot screen' }).click();
    const change = page.getByRole('form', { name: 'Key', exact: true });
    assert.deepEqual(await violationsIn(page), [], 'a key that is changed');
    await change.getByLabel('read_devices', { exact: true }).uncheck();
    await change.getByLabel('read_events', { exact: true }).check();
    await change.getByRole('button', { name: 'Save' }).click();
    await change.waitFor({ state: 'detached' });
    assert.deepEqual([await get('/devices'), await get('/events')], [403, 200]);
    await page.getByRole('button', { name: 'Revoke' }).click();
    await page.getByRole('button', { name: 'Revoke permanently' }).click();
    await page.getByText('revoked', { exact: true }).waitFor();
    assert.equal(await get('/events'), 403);
  }

  async function useWebhook(t: TestContext, { page }: Visitor): Promise<void> {
    const receiver = await startReceiver(t);
    await page.locator('summary', { hasText: 'New webhook' }).click();
    const form = page.getByRole('form', { name: 'New webhook' });
    await form.getByLabel('URL').fill('http://127.0.0.1/');
    await form.getByRole('button').click();
    await page.locator('[name="url"][aria-invalid="true"]').waitFor();
    await form.getByLabel('URL').fill(`${receiver.url}/hook`);
    await form.getByRole('button').click();
    await page.getByText('Its secret:').waitFor();
    await page.getByRole('button', { name: 'Rotate the secret' }).click();
    await page.getByRole('button', { name: 'Make a new secret' }).click();
    const secret = await page.getByText('The new secret:').locator('code').textContent();
    const test = page.getByRole('button', { name: 'Send a test' });
    const listed = page.locator('.panel .rows li');
    const refreshedTo = async (text: RegExp): Promise<void> => {
      let last = '';
      await waitFor(
        async () => {
          await page.getByRole('button', { name: 'Refresh' }).click();
          last = (await listed.allTextContents()).join('\n');
          return text.test(last);
        },
        () => `${text} is not in "${last}"`,
      );
    };
    await test.click();
    await refreshedTo(/delivered/);
    receiver.behave([503]);
    await test.click();
    await refreshedTo(/failed.*1 attempt: the receiver answered 503/);
    await page.getByText('Failed at least once').locator('..').getByText('1', { exact: true }).waitFor();
    await page.getByLabel('Status').selectOption('exhausted');
    await page.getByText('No delivery is like this').waitFor();
    await page.getByLabel('Status').selectOption('failed');
    await refreshedTo(/next try in 1 min|next try in 2 min/);
    await listed.getByText('Payload and attempts').focus();
    await page.keyboard.press('Enter');
    await listed.getByText(/^dlv_[0-9a-f]{32}$/).waitFor();
    assert.deepEqual(await violationsIn(page), [], 'deliveries');
    await page.getByLabel('Status').selectOption('');

    receiver.behave([200]);
    await page.getByLabel('Made since').fill(fieldText(Date.now() - 10 * MINUTE_MS));
    await page.getByRole('button', { name: 'Replay all that failed' }).click();
    await page.getByText('1 delivery is sent again.').waitFor();
    await refreshedTo(/delivered[\s\S]*delivered/);
    const { headers, body } = receiver.received.at(-1) ?? assert.fail('it was not sent again');
    const signature = createHmac('sha256', secret ?? '')
      .update(body)
      .digest('hex');
    assert.equal(headers['x-service-signature'], `sha256=${signature}`);

    await page.getByRole('button', { name: 'Edit' }).click();
    const edited = page.getByRole('form', { name: 'Webhook', exact: true });
    await edited.getByLabel('Attempts at most').fill('many');
    await edited.getByRole('button', { name: 'Save' }).click();
    await page.locator('[name="max_retries"][aria-invalid="true"]').waitFor();
    assert.deepEqual(await violationsIn(page), [], 'a webhook that is edited');
    await edited.getByLabel('Attempts at most').fill('3');
    await edited.getByLabel('Description').fill('Dispatch desk');
    await edited.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Dispatch desk; all types of events; 3 attempts at most').waitFor();
    await page.getByRole('button', { name: 'Pause' }).click();
    await page.getByRole('button', { name: 'Start again' }).click();
    await page.getByRole('button', { name: 'Pause' }).waitFor();
  }
});
