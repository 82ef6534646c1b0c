import assert from 'node:assert/strict';
import { after, before, describe, test } from 'node:test';
import type { Browser } from 'playwright-core';
import { formatIso, HOUR_MS } from '../../src/lib/time.ts';
import { glide } from '../support/console/glide.ts';
import { violationsIn } from '../support/console/violations.ts';
import { callApi } from '../support/http/application.ts';
import { newContext, startBrowser, withoutBrowser } from '../support/http/browser.ts';
import { OWNER, ownerPod } from '../support/ownerPod.ts';
import { NO_LIMITS, startPod } from '../support/pod.ts';
import { waitForEqual } from '../support/waitFor.ts';

const VAN = '350000000000001';
const owner = ownerPod({ devices: [{ imei: VAN, name: 'Van 12', plate: 'AB 1' }] });

async function made(more: object = {}): Promise<{ id: number; url: string }> {
  const body = { devices: [VAN], expires_at: formatIso(Date.now() + HOUR_MS), ...more };
  const reply = await callApi(owner.pod, 'POST', '/v3/shares', { key: owner.key, body });
  assert.equal(reply.status, 201, reply.text);
  return reply.body.data;
}

const end = (id: number) => callApi(owner.pod, 'DELETE', `/v3/shares/${id}`, { key: owner.key });
const go = (latitude: number, speed_kmh: number, recorded_at = Date.now()) =>
  owner.pod.points([{ imei: VAN, latitude, longitude: 12.1, speed_kmh, heading: 90, recorded_at }]);

describe('GET /s/{token}', () => {
  before(() => go(41.5, 30));

  test('is a page that nobody keeps, indexes or passes on, without a cookie and without a word of the account', async () => {
    const { url } = await made({ name: 'Your delivery' });
    const answer = await fetch(url);
    const text = await answer.text();
    assert.equal(answer.status, 200, text);
    assert.match(answer.headers.get('content-type') ?? '', /^text\/html/);
    assert.equal(answer.headers.get('referrer-policy'), 'no-referrer');
    assert.equal(answer.headers.get('x-robots-tag'), 'noindex');
    assert.equal(answer.headers.get('cache-control'), 'no-store');
    assert.equal(answer.headers.get('set-cookie'), null);
    assert.doesNotMatch(answer.headers.get('content-security-policy') ?? '', /unsafe/);
    for (const secret of [VAN, OWNER, 'Van 12', 'AB 1']) assert.ok(!text.includes(secret));
    const head = await fetch(url, { method: 'HEAD' });
    assert.deepEqual([head.status, await head.text()], [200, '']);
  });

  test('is 404 for a token that there is not, and 410 once the link has ended, and says nothing else', async () => {
    const { id, url } = await made();
    assert.equal((await end(id)).status, 204);
    for (const [path, status, said] of [
      [url, 410, 'This link has ended.'],
      [`${owner.pod.api}/s/${'A'.repeat(43)}`, 404, 'There is nothing at this link.'],
      [`${owner.pod.api}/s/..%2fconsole`, 404, 'There is nothing at this link.'],
    ] as const) {
      const answer = await fetch(path);
      assert.equal(answer.status, status);
      const page = await answer.text();
      assert.ok(page.includes(`<body><main><h1>${said}</h1><p>`));
      for (const secret of [VAN, OWNER, 'Van 12', 'AB 1']) assert.ok(!page.includes(secret));
    }
  });

  test('counts by address, also with a wrong token', async (t) => {
    const few = await startPod(owner.url, { t, env: { ...NO_LIMITS, RATE_LIMIT_IP_MINUTE: '2' } });
    const statuses = [];
    for (let n = 0; n < 3; n++) statuses.push((await fetch(`${few.api}/s/${'B'.repeat(43)}`)).status);
    assert.deepEqual(statuses, [404, 404, 429]);
  });

  describe('in a browser', { skip: withoutBrowser() }, () => {
    let browser: Browser;
    before(async () => {
      browser = await startBrowser({ hasWebGl: true });
    });
    after(() => browser.close());

    test('shows where the vehicle is as it moves, on a map and as a list, until the link ends', async () => {
      const { id, url } = await made({ name: 'Your delivery', show: ['name', 'speed'] });
      const page = await (await newContext(browser, { viewport: { width: 360, height: 640 } })).newPage();
      const complaints: string[] = [];
      page.on('pageerror', (error) => complaints.push(error.message));
      page.on('console', (message) => {
        if (message.type() === 'error') complaints.push(message.text());
      });
      page.on('request', (request) => {
        if (new URL(request.url()).origin !== owner.pod.api) complaints.push(`asked: ${request.url()}`);
      });
      await page.goto(url);
      await page.getByRole('heading', { name: 'Your delivery' }).waitFor();
      await page.getByText('Live', { exact: true }).waitFor();
      await page.getByText('Van 12').waitFor();
      await page.locator('.map canvas').first().waitFor();
      const lat = async () =>
        (await page.evaluate<{ lat: number }[]>("document.querySelector('.map').vehicles?.() ?? []"))[0]
          ?.lat ?? 0;
      await waitForEqual(async () => (await lat()) > 41, true, 'that the vehicle is on the map');
      // It glides from its place to the next one within the time between both.
      let recordedAtMs = Date.now();
      await glide(lat, (latitude) => {
        recordedAtMs += 5_000;
        return go(latitude, 77, recordedAtMs);
      });
      await page.getByText('77 km/h').waitFor();
      await waitForEqual(() => page.title(), 'Your delivery', 'the title');
      assert.deepEqual(await violationsIn(page), []);
      const width = () => page.evaluate<number>('document.scrollingElement.scrollWidth');
      await waitForEqual(width, 360, 'the width');
      assert.equal(await page.evaluate('document.cookie'), '');
      await end(id);
      await page.getByText('This link has ended.').waitFor();
      await page.getByText('Van 12').waitFor({ state: 'detached' });
      assert.deepEqual(complaints, []);
    });
  });
});
