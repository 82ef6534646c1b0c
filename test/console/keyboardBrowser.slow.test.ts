import assert from 'node:assert/strict';
import { test } from 'node:test';
import { focused, focusedName } from '../support/console/focused.ts';
import { OWNER, serveConsole } from '../support/console/servedConsole.ts';
import { visitConsole } from '../support/console/visitor.ts';
import { PASSWORD } from '../support/http/application.ts';
import { startBrowser, withoutBrowser } from '../support/http/browser.ts';

test('the keyboard alone leads from the login over a new area to the logout', {
  skip: withoutBrowser(),
}, async (t) => {
  const browser = await startBrowser();
  t.after(() => browser.close());
  const { api } = await serveConsole(t);
  const { page, complaints } = await visitConsole(t, browser, api);
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
  await tabTo('New area');
  await page.keyboard.press('Enter');
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
