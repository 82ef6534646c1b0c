import assert from 'node:assert/strict';
import { join } from 'node:path';
import { describe, test } from 'node:test';
import type { Page } from 'playwright-core';
import { demoDir, startDemo } from '../support/demoProcess.ts';
import { startBrowser, withoutBrowser } from '../support/http/browser.ts';
import { waitFor } from '../support/waitFor.ts';

/** A folder for the pictures of the README: FLEET_SCREENSHOTS=docs/images npm test -- demoBrowser */
const PICTURES = process.env['FLEET_SCREENSHOTS'];
/** Until labels, tiles and the fleet have come to rest. */
const SETTLE_MS = 4_000;

async function take(page: Page, name: string): Promise<void> {
  if (PICTURES === undefined) return;
  await page.waitForTimeout(SETTLE_MS);
  await page.screenshot({ path: join(PICTURES, name) });
}

describe('the console of the demo', { skip: withoutBrowser() }, () => {
  test('opens with what the demo prints, and vehicles move on its map', async (t) => {
    const { welcome } = await startDemo(t, await demoDir(t));
    const [, address = '', email = '', password = ''] =
      /(http:\S+\/console) +\(log in as (\S+) with ([^,]+),/.exec(welcome) ?? [];
    const browser = await startBrowser({ hasWebGl: true });
    t.after(() => browser.close());
    const page = await browser.newPage({ viewport: { width: 1_280, height: 720 } });
    await page.goto(address);
    await page.getByLabel('E-mail').fill(email);
    await page.getByLabel('Password').fill(password);
    await page.keyboard.press('Enter');
    await page.getByText('Live', { exact: true }).waitFor();

    const imei = /devices\/(\d+)\/location/.exec(welcome)?.[1] ?? '';
    const place = async () =>
      JSON.stringify(
        await page.evaluate(`document.querySelector('.map').view?.vehicleAt('${imei}') ?? null`),
      );
    await waitFor(async () => (await place()) !== 'null');
    const before = await place();
    await waitFor(async () => (await place()) !== before);
    await take(page, 'console-map.png');

    await page.getByRole('link', { name: 'Events', exact: true }).click();
    const why = page.getByRole('button', { name: /^Why: / }).first();
    await why.click();
    await page.locator('svg').first().waitFor();
    assert.match((await page.locator('main').textContent()) ?? '', /entered|left/);
    await page.emulateMedia({ colorScheme: 'dark' });
    await take(page, 'console-why.png');
  });
});
