import assert from 'node:assert/strict';
import { after, before, describe, type TestContext, test } from 'node:test';
import type { Browser, BrowserContextOptions, Page, Route } from 'playwright-core';
import type { AreaBody } from '../../src/console/page/areaDraft.ts';
import { type Visitor, visitConsole } from '../support/console/visitor.ts';
import { logIn, makeOwner } from '../support/http/application.ts';
import { startBrowser, withoutBrowser } from '../support/http/browser.ts';
import { NO_LIMITS, type Pod, request, startPod } from '../support/pod.ts';
import { adminOf } from '../support/postgres/admin.ts';
import { createDatabase } from '../support/postgres/postgres.ts';
import { waitFor } from '../support/waitFor.ts';

const OWNER = 'owner@example.com';
const VAN = '356938035643809';
const BUS = '356938035643817';
const CAR = '356938035643825';
const TRAM = '356938035643833';
const AREA = { name: 'Depot', type: 'circle', center: { lat: 48.2, lng: 16.37 }, radius_m: 5_000 };

interface Place {
  readonly lng: number;
  readonly lat: number;
  readonly x: number;
  readonly y: number;
}

describe('the map of the console', { skip: withoutBrowser() }, () => {
  let pod: Pod;
  let browser: Browser;
  let clockMs = Date.now() - 600_000;

  before(async () => {
    const { url } = await createDatabase();
    const admin = adminOf(url);
    await makeOwner(admin, OWNER);
    await admin.device(OWNER, VAN, '--name', 'Van 12', '--plate', 'GA 731 KL');
    await admin.device(OWNER, BUS, '--name', 'Bus 3');
    await admin.device(OWNER, CAR, '--name', 'Car 9');
    await admin.device(OWNER, TRAM, '--name', 'Tram 7');
    pod = await startPod(url, { env: { ...NO_LIMITS, ROLES: 'api,ingest' } });
    // On both sides of 180°, and two on one spot.
    for (const imei of [BUS, CAR]) await send(imei, { latitude: -17.8, longitude: -179.5 });
    await send(TRAM, { latitude: -17, longitude: 179 });
    for (let step = 0; step < 5; step++) await send(VAN, { latitude: -17.8 + step / 100, longitude: 179.5 });
    browser = await startBrowser({ hasWebGl: true });
  });

  after(async () => {
    await browser?.close();
    await pod.stop();
  });

  const send = (imei: string, place: object) => {
    clockMs += 2_000; // how long it glides
    return pod.points([{ imei, recorded_at: clockMs, speed_kmh: 30, heading: 45, ...place }]);
  };

  async function enter(t: TestContext, options: BrowserContextOptions = {}): Promise<Visitor> {
    const visitor = await visitConsole(t, browser, pod.api, options);
    await visitor.logIn(OWNER);
    await waitFor(async () => (await placeOf(visitor.page, VAN)) !== null);
    return visitor;
  }

  test('the reason for a trail that could not be read stays when the vehicle moves', async (t) => {
    const { page } = await enter(t);
    await page.route('**/history?*', refuse);
    await page.getByLabel('Search').fill('Van');
    await page.keyboard.press('Enter');
    await page.getByText('0 points; slow down').waitFor();
    await send(VAN, { latitude: -17.75, longitude: 179.5 });
    await page.getByText('1 point; slow down').waitFor();
  });

  test('a trail that was refused is read again, and what has come meanwhile is in it once', async (t) => {
    const { page } = await enter(t);
    await page.clock.install();
    await page.route('**/history?*', refuse);
    await page.getByLabel('Search').fill('Tram');
    await page.keyboard.press('Enter');
    await page.getByText('0 points; slow down').waitFor();
    await send(TRAM, { latitude: -17.1, longitude: 179 });
    await page.getByText('1 point; slow down').waitFor();
    await page.unroute('**/history?*');
    await page.clock.fastForward(31_000);
    await page.getByText('2 points', { exact: true }).waitFor();
  });

  test('areas that were refused are read again', async (t) => {
    const visitor = await visitConsole(t, browser, pod.api);
    const { page } = visitor;
    await page.clock.install();
    await page.route('**/api/v1/areas?*', refuse);
    await visitor.logIn(OWNER);
    const missing = page.getByText('Not all areas are drawn');
    await missing.waitFor();
    await page.unroute('**/api/v1/areas?*');
    await page.clock.fastForward(31_000);
    await missing.waitFor({ state: 'detached' });
  });

  const placeOf = (page: Page, imei: string) =>
    page.evaluate(
      `document.querySelector('.map').view?.vehicleAt('${imei}') ?? null`,
    ) as Promise<Place | null>;

  /** The scheme in whose colours a vehicle is drawn; null while it is not drawn. */
  const schemeAt = async (page: Page, imei: string) => {
    const drawn = (await page.evaluate(`(async () => {
      const { view } = document.querySelector('.map');
      const canvas = document.querySelector('canvas.vehicles');
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
      // In the task that draws them: later the canvas is empty for all but the screen.
      await new Promise((resolve) => {
        view.map.once('render', () => resolve(copy.drawImage(canvas, 0, 0)));
        view.map.triggerRepaint();
      });
      const { x, y } = view.vehicleAt('${imei}');
      const { vehicleColors } = await import('/console/map/baseStyle.ts');
      const pixel = [...copy.getImageData(x * devicePixelRatio, y * devicePixelRatio, 1, 1).data];
      return { pixel, light: vehicleColors('light').statuses, dark: vehicleColors('dark').statuses };
    })()`)) as { pixel: number[]; light: number[]; dark: number[] };
    const isAmong = (statuses: readonly number[]) =>
      [0, 3, 6, 9].some((at) =>
        [0, 1, 2].every((n) => Math.abs((statuses[at + n] as number) * 255 - (drawn.pixel[n] as number)) < 3),
      );
    if (drawn.pixel[3] !== 255) return null;
    return isAmong(drawn.light) ? 'light' : isAmong(drawn.dark) ? 'dark' : null;
  };

  const sizeOf = (page: Page) =>
    page.evaluate(
      '(({ clientWidth, clientHeight }) => [clientWidth, clientHeight])(document.querySelector(".map"))',
    );

  for (const width of [360, 1_280])
    test(`shows the fleet across 180°, moving, found, followed and with its trail, at ${width} px`, async (t) => {
      const { page, complaints } = await enter(t, { viewport: { width, height: 780 } });
      const [mapWidth, mapHeight] = (await sizeOf(page)) as [number, number];
      for (const imei of [VAN, BUS])
        await waitFor(async () => {
          const { x, y } = (await placeOf(page, imei)) as Place;
          return x >= 0 && y >= 0 && x <= mapWidth && y <= mapHeight;
        });
      const { lat } = (await placeOf(page, VAN)) as Place;
      await send(VAN, { latitude: lat + 0.01, longitude: 179.5 });
      const seen: number[] = [];
      await waitFor(async () => {
        seen.push(((await placeOf(page, VAN)) as Place).lat);
        return (seen.at(-1) as number) > lat + 0.0099;
      });
      assert.ok(
        seen.some((one) => one > lat + 0.001 && one < lat + 0.009),
        'it glides',
      );
      await page.getByLabel('Search').fill('ga731');
      await page.keyboard.press('Enter');
      await page.getByRole('button', { name: 'Follow' }).click();
      await page.getByText(/^\d+ points$/).waitFor();
      const isCentred = async () => {
        const { x, y } = (await placeOf(page, VAN)) as Place;
        return Math.hypot(x - mapWidth / 2, y - mapHeight / 2) < 2;
      };
      await waitFor(isCentred);
      await send(VAN, { latitude: lat + 0.02, longitude: 179.51 });
      await waitFor(async () => Math.abs(((await placeOf(page, VAN)) as Place).lng - 179.51) < 0.001);
      await waitFor(isCentred);
      await page.getByLabel('Map', { exact: true }).focus();
      await page.keyboard.press('ArrowLeft');
      await page.locator('button[aria-pressed="false"]', { hasText: 'Follow' }).waitFor();
      assert.deepEqual(complaints, []);
    });

  test('tells vehicles on one spot apart', async (t) => {
    const { page, complaints } = await enter(t);
    await waitFor(async () => ((await placeOf(page, BUS)) as Place).x > 0);
    const box = await page.locator('.map').boundingBox();
    const { x, y } = (await placeOf(page, BUS)) as Place;
    await page.mouse.move((box?.x ?? 0) + x, (box?.y ?? 0) + y);
    await page.locator('.spot-label', { hasText: 'Bus 3' }).waitFor();
    await page.mouse.click((box?.x ?? 0) + x, (box?.y ?? 0) + y);
    const spot = page.getByLabel('Vehicles on this spot');
    await spot.getByText('2 vehicles here').waitFor();
    await spot.getByRole('button', { name: 'Car 9' }).click();
    await page.getByLabel('Chosen: Car 9').waitFor();
    assert.deepEqual(complaints, []);
  });

  test('draws vehicles and areas in the colours that the person prefers', async (t) => {
    const headers = {
      Authorization: `Bearer ${await logIn(pod, OWNER)}`,
      'Content-Type': 'application/json',
    };
    const body = JSON.stringify(AREA);
    assert.equal((await request(`${pod.api}/api/v1/areas`, { method: 'POST', headers, body })).status, 201);
    for (const colorScheme of ['light', 'dark'] as const) {
      const { page, complaints, show } = await enter(t, { colorScheme });
      const map = "document.querySelector('.map').view.map";
      const drawn = (layer: string) =>
        page.evaluate(
          `${map}.isStyleLoaded() && ${map}.queryRenderedFeatures({ layers: ['${layer}'] }).length`,
        );
      const other = colorScheme === 'light' ? 'dark' : 'light';
      await page.evaluate(`${map}.jumpTo({ center: [179.5, -17.76], zoom: 9 })`);
      await waitFor(async () => (await schemeAt(page, VAN)) === colorScheme);
      await page.emulateMedia({ colorScheme: other });
      await waitFor(async () => (await schemeAt(page, VAN)) === other);
      await page.emulateMedia({ colorScheme });
      await page.evaluate(`${map}.jumpTo({ center: [16.37, 48.2], zoom: 9 })`);
      await waitFor(async () => ((await drawn('area-fill')) as number) > 0);
      await waitFor(async () => ((await drawn('land')) as number) > 0);
      await page.emulateMedia({ colorScheme: other });
      await waitFor(async () => ((await drawn('area-fill')) as number) > 0);
      await page.evaluate(`${map}.jumpTo({ center: [-120, -40], zoom: 9 })`);
      await waitFor(async () => (await drawn('area-fill')) === 0);
      await show('Areas');
      await page.getByRole('button', { name: 'Depot' }).click();
      await waitFor(async () => ((await drawn('area-fill')) as number) > 0);
      assert.deepEqual(complaints, []);
    }
  });

  test('draws vehicles again after the browser took its graphics away for a while', async (t) => {
    const { page } = await enter(t);
    await waitFor(async () => (await schemeAt(page, VAN)) !== null);
    await page.evaluate(`(() => {
      const gl = document.querySelector('canvas.vehicles').getContext('webgl2');
      globalThis.graphics = gl.getExtension('WEBGL_lose_context');
      graphics.loseContext();
    })()`);
    await waitFor(async () => (await schemeAt(page, VAN)) === null);
    await page.evaluate('graphics.restoreContext()');
    await waitFor(async () => (await schemeAt(page, VAN)) !== null);
  });

  test('draws the draft of an area, and the pointer changes it', async (t) => {
    const { page, complaints } = await enter(t, { viewport: { width: 1_280, height: 720 } });
    const draft = (run: string) =>
      page.evaluate(`import('/console/areaDraft.ts').then((draft) => { ${run} })`);
    const body = () => draft('return draft.areaDraft.value.body') as Promise<AreaBody>;
    await page.evaluate("document.querySelector('.map').view.map.jumpTo({ center: [180, 0], zoom: 12 })");
    const box = (await page.locator('.map').boundingBox()) as { x: number; y: number };
    const at = (x: number, y: number) => [box.x + x, box.y + y] as const;
    const drag = async (from: readonly [number, number], to: readonly [number, number]) => {
      await page.mouse.move(...from);
      await page.mouse.down();
      await page.mouse.move(...to, { steps: 3 });
      await page.mouse.up();
    };
    await draft('draft.beginDraft()');
    await page.mouse.click(...at(300, 300));
    await waitFor(async () => (await body()).center !== null);
    const { center, radius_m } = await body();
    const metrePx = 200 / (40_075_017 / (512 * 2 ** 12));
    await drag(at(300 + metrePx, 300), at(400, 300));
    const rim = (await body()).radius_m as number;
    assert.ok(radius_m === 200 && Math.abs(rim - 100 / (metrePx / 200)) < 25, `${rim} m`);
    await drag(at(300, 300), at(300, 350));
    const moved = await body();
    assert.ok((moved.center?.lat ?? 0) < (center?.lat ?? 0) && moved.radius_m === rim);
    assert.ok(Math.abs((moved.center?.lng ?? 0) - (center?.lng ?? 0)) < 1e-6);
    await draft("draft.changeDraft({ type: 'polygon' })");
    for (const [x, y] of [
      [200, 200],
      [700, 200],
      [700, 400],
    ] as const) {
      await page.mouse.click(...at(x, y));
      await new Promise((resolve) => setTimeout(resolve, 400)); // not a double click
    }
    const { points } = await body();
    await drag(at(700, 200), at(720, 220));
    const after = (await body()).points;
    assert.deepEqual([points.length, after.length, after[0], after[2]], [3, 3, points[0], points[2]]);
    assert.ok((after[1]?.lat ?? 0) < (points[1]?.lat ?? 0));
    assert.ok(
      after.every(({ lng }) => Math.abs(lng) <= 180) &&
        new Set(after.map(({ lng }) => Math.sign(lng))).size === 2,
    );
    assert.deepEqual(complaints, []);
  });

  test('says when areas cannot be read, and an area whose answer is lost is not made twice', async (t) => {
    const { page, logIn: enterPlain, show } = await visitConsole(t, browser, pod.api);
    const isList = (url: URL) => url.pathname === '/api/v1/areas';
    await page.route(isList, (route) => route.abort());
    await enterPlain(OWNER);
    await page.getByText('Not all areas are drawn').waitFor();
    await page.unroute(isList);
    await show('Areas');
    await page.getByRole('button', { name: 'New area' }).click();
    const form = page.getByRole('form', { name: 'Area' });
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
    const { body } = await request(`${pod.api}/api/v1/areas?q=Quay`, {
      headers: { Authorization: `Bearer ${await logIn(pod, OWNER)}` },
    });
    assert.equal(body.data.filter(({ name }: { name: string }) => name === 'Quay').length, 1);
  });

  test('says that there is no map where the browser cannot draw it, and the lists still work', async (t) => {
    const plain = await startBrowser();
    t.after(() => plain.close());
    const { page, complaints, logIn: enterPlain, show } = await visitConsole(t, plain, pod.api);
    await enterPlain(OWNER);
    await page.getByText('This browser cannot draw the map').waitFor();
    await page.getByLabel('Search').fill('van');
    await page.getByRole('button', { name: 'Van 12' }).click();
    await page.getByLabel('Chosen: Van 12').waitFor();
    await show('Devices');
    await page.getByText('4 of 4 devices').waitFor();
    assert.deepEqual(complaints, []);
  });
});

const refuse = (route: Route): Promise<void> =>
  route.fulfill({ status: 429, json: { error: { code: 'TOO_MANY_REQUESTS', message: 'slow down' } } });
