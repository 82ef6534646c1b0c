import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { before, describe, type TestContext, test } from 'node:test';
import { promisify } from 'node:util';
import type { Locator, Page } from 'playwright-core';
import { demoConfig } from '../../src/cli/demo/demoConfig.ts';
import { MINUTE_MS } from '../../src/lib/time.ts';
import { exists } from '../../src/postgres/embedded/dataFolder.ts';
import { demoDir, startDemo } from '../support/demoProcess.ts';
import { newContext, startBrowser, withoutBrowser } from '../support/http/browser.ts';
import { askCurl } from '../support/http/demoCurls.ts';
import { eventually, processesIn } from '../support/postgres/embedded.ts';
import { waitFor } from '../support/waitFor.ts';

/** A folder for the pictures of the README and of docs/console.md: npm run pictures */
const PICTURES = process.env['FLEET_SCREENSHOTS'];
const WIDE = { width: 1_280, height: 720 };
/** The level of a warning in the log (pino). */
const WARN = 40;
/** Until labels and the fleet have come to rest. */
const SETTLE_MS = 6_000;
const ALL_DRAWN = "document.querySelector('.map').view?.map.areTilesLoaded() === true";

let hasCurl = false;
before(async () => {
  hasCurl = await promisify(execFile)('curl', ['--version']).then(
    () => true,
    () => false,
  );
});

/** Pastes a printed line into a shell; without curl on the machine, does what it says. */
async function paste(line: string): Promise<{ data: unknown }> {
  if (hasCurl) {
    const { stdout } = await promisify(execFile)('sh', ['-c', `${line} --fail-with-body`]);
    return JSON.parse(stdout) as { data: unknown };
  }
  return askCurl(line);
}

/** The folder that Postgres works in. */
async function clusterOf(dataDir: string): Promise<string> {
  const pointer = join(dataDir, 'demo', 'place.json');
  const home = (await exists(pointer))
    ? (JSON.parse(await readFile(pointer, 'utf8')) as { place: string }).place
    : join(dataDir, 'demo');
  return join(home, 'cluster');
}

async function takenPort(t: TestContext): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  t.after(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** `shown`: what has to be in sight, wherever new events have moved it. */
async function take(page: Page, name: string, shown?: Locator): Promise<void> {
  if (PICTURES === undefined) return;
  await page.waitForTimeout(SETTLE_MS);
  await waitFor(() => page.evaluate<boolean>(ALL_DRAWN), 'the map lacks tiles');
  await shown?.scrollIntoViewIfNeeded();
  await page.screenshot({ path: join(PICTURES, name) });
}

async function useConsole(t: TestContext, welcome: string): Promise<void> {
  const [, address = '', email = '', password = ''] =
    /^Console {2}(\S+) {2}\(log in as (\S+) with (\S+),/m.exec(welcome) ?? [];
  // The map itself has tests of its own.
  const browser = await startBrowser({ hasWebGl: PICTURES !== undefined });
  t.after(() => browser.close());
  const page = await (await newContext(browser, { viewport: WIDE })).newPage();
  await page.goto(address);
  await page.getByLabel('E-mail').fill(email);
  await page.getByLabel('Password').fill(password);
  await page.keyboard.press('Enter');
  await page.getByText('Live', { exact: true }).waitFor();
  if (PICTURES !== undefined) await takeWalk(page);
  await page.getByRole('link', { name: 'Events', exact: true }).click();
  await page
    .getByRole('button', { name: /^Why: / })
    .first()
    .click();
  await page.locator('.time-line svg').waitFor();
  await page
    .locator('main')
    .filter({ hasText: /entered|left/ })
    .waitFor();
  await page.emulateMedia({ colorScheme: 'dark' });
  await take(page, 'console-why.png', page.locator('.why'));
}

/** The pages of the console before its events; they have tests of their own. */
async function takeWalk(page: Page): Promise<void> {
  await take(page, 'console-map.png');
  await page.locator('.row').first().click();
  await page.getByRole('button', { name: 'Today' }).click();
  const course = page.getByRole('img', { name: 'Speed over the day' });
  const again = page.getByRole('button', { name: 'Try again' });
  await waitFor(async () => {
    // A busy machine may have refused to read the day.
    if ((await again.count()) > 0) await again.first().click();
    return course.isVisible();
  }, 'the day is not drawn');
  await take(page, 'console-day.png');
  await page.setViewportSize({ width: 360, height: 720 });
  await page.emulateMedia({ colorScheme: 'dark' });
  await take(page, 'console-phone.png');
  await page.setViewportSize(WIDE);
  await page.getByRole('link', { name: 'Areas', exact: true }).click();
  await page.getByRole('button', { name: 'Old town' }).click();
  await page.getByLabel('Who is in Old town').waitFor();
  await take(page, 'console-areas.png');
  await page.emulateMedia({ colorScheme: 'light' });
  await page.getByRole('link', { name: 'Devices', exact: true }).click();
  const rows = page.locator('tbody tr');
  const shown = async () => (await rows.allTextContents()).join();
  await rows.first().waitFor();
  const before = await shown();
  await waitFor(async () => (await shown()) !== before, 'no vehicle moves');
  await take(page, 'console-devices.png');
}

/** Drawing maps without a graphics card, or other work beside it, leaves the demo too little of a processor to say nothing. */
function isLateness(line: string): boolean {
  const { level, msg, reason } = JSON.parse(line) as Record<string, unknown>;
  return level === WARN && (String(msg).startsWith('the pod is late') || reason === 'no_answer');
}

describe('npm run demo', () => {
  test('prints four lines that answer with moving vehicles, ends with Ctrl-C, and goes on at the next start', async (t) => {
    const dataDir = await demoDir(t);
    const startedAt = new Date(Date.now() - 10 * MINUTE_MS).toISOString();
    const demo = await startDemo(t, dataDir);
    assert.equal(demo.curls.length, 4, demo.welcome);
    assert.match(demo.welcome, /120 calls a minute per key, 1000 an hour per key, 120 a minute per address/);
    assert.match(demo.welcome, /DATABASE_URL is set and not used/);

    const [nearest, location, events, contains] = demo.curls as [string, string, string, string];
    const near = (await paste(nearest)).data as { distance_km: number; name: string }[];
    assert.equal(near.length, 3);
    assert.ok(near.every(({ distance_km }) => distance_km < 5));
    const first = (await paste(location)).data as {
      latitude: number;
      longitude: number;
      recorded_at: string;
    };
    const happened = (await paste(events)).data as { type: string; message: string }[];
    assert.ok(happened.some(({ type, message }) => type === 'geofence' && message.includes('entered')));
    const inside = (await paste(contains)).data as { inside: boolean; distance_m: number };
    assert.ok(inside.inside && inside.distance_m < 0);
    await eventually('the vehicle has moved on', async () => {
      const next = (await paste(location)).data as typeof first;
      return next.latitude !== first.latitude && next.recorded_at > first.recorded_at;
    });

    const past = `/history?from=${startedAt}&to=${first.recorded_at}&limit=1000`;
    const [imei = ''] = /[0-9]{15}(?=\/location)/.exec(location) ?? [];
    const driven = (await paste(location.replace('/location', past))).data as unknown[];
    assert.ok(driven.length > 60);
    const name = 'its console opens with what it prints, and an event says why';
    await t.test(name, { skip: withoutBrowser() }, (inner) => useConsole(inner, demo.welcome));

    const cluster = await clusterOf(dataDir);
    if (process.platform === 'linux') assert.ok((await processesIn(cluster)).length > 0);
    const { code, out, err } = await demo.interrupt();
    assert.equal(code, 0, err);
    assert.match(out, /Stopped\./);
    assert.doesNotMatch(out, /points\/s/, 'no live line outside a terminal');
    assert.deepEqual(
      err.split('\n').filter((line) => line !== '' && !isLateness(line)),
      [],
    );
    if (process.platform === 'linux') assert.deepEqual(await processesIn(cluster), []);

    const again = await startDemo(t, dataDir);
    assert.ok(((await paste(again.curls[0] as string)).data as unknown[]).length === 3);
    const { data } = await paste((again.curls[1] as string).replace(/[0-9]{15}\/location/, `${imei}${past}`));
    assert.deepEqual(data, driven, 'no second way through the same time');
    assert.notEqual(again.curls[0], nearest, 'a new key');
    await t.test('beside one that runs, it says so and what to do', async (inner) => {
      await assert.rejects(startDemo(inner, dataDir), /runs already \(process \d+\).*set DATA_DIR/s);
    });
    assert.equal((await again.interrupt()).code, 0);
  });
});

describe('the configuration of the demo', () => {
  test('never uses the database, the Redis or the folder of a real service', async () => {
    const config = await demoConfig({
      DATABASE_URL: 'postgres://real/fleet',
      REDIS_URL: 'redis://real',
      DATA_DIR: '/somewhere',
      ROLES: 'delivery',
      PORT: '0',
      INGEST_PORT: '0',
    });
    assert.ok(config.ok);
    const { databaseUrl, redisUrl, dataDir, roles, logLevel } = config.value;
    assert.deepEqual([databaseUrl, redisUrl, dataDir], [null, null, join('/somewhere', 'demo')]);
    assert.ok(roles.has('api') && roles.has('ingest'));
    assert.equal(logLevel, 'warn');
  });

  test('a usual port that is taken is replaced by a free one', async (t) => {
    // The port is taken, by this test or by another process.
    const server = createServer();
    await new Promise<void>((resolve) => {
      server.once('error', () => resolve());
      server.listen(3000, '127.0.0.1', resolve);
    });
    t.after(() => server.close());
    const config = await demoConfig({});
    assert.ok(config.ok);
    assert.equal(config.value.port, 0);
  });

  test('a port that was asked for and is taken is an error with a name', async (t) => {
    const port = await takenPort(t);
    const config = await demoConfig({ PORT: String(port), INGEST_PORT: '0' });
    assert.ok(!config.ok);
    assert.match(config.error.join(), new RegExp(`PORT ${port} is taken: set another`));
    const ingest = await demoConfig({ PORT: '0', INGEST_PORT: String(port) });
    assert.ok(!ingest.ok);
    assert.match(ingest.error.join(), /INGEST_PORT/);
  });

  test('what readConfig refuses stays refused', async () => {
    const config = await demoConfig({ PORT: '70000', INGEST_PORT: 'x' });
    assert.ok(!config.ok);
    assert.equal(config.error.length, 2);
  });
});
