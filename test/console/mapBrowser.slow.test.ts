import assert from 'node:assert/strict';
import { once } from 'node:events';
import { createServer } from 'node:http';
import { before, describe, type TestContext, test } from 'node:test';
import type { Page, Route } from 'playwright-core';
import { simulatedImei } from '../../src/cli/simulate/simulatedFleet.ts';
import type { AreaBody } from '../../src/console/page/areaDraft.ts';
import { dateOf } from '../../src/console/page/format.ts';
import { TILE_EXTENT, VectorTile } from '../../src/geo/vectorTile.ts';
import { glide } from '../support/console/glide.ts';
import { BUS, OWNER, openConsole, VAN } from '../support/console/openedConsole.ts';
import { MVT, tileFile, vectorTile } from '../support/console/tileFile.ts';
import { violationsIn } from '../support/console/violations.ts';
import { type Look, type Visitor, visitConsole } from '../support/console/visitor.ts';
import { callApi, logIn, makeOwner } from '../support/http/application.ts';
import { withoutBrowser } from '../support/http/browser.ts';
import { NO_LIMITS, startPod } from '../support/pod.ts';
import { waitFor, waitForEqual } from '../support/waitFor.ts';

const CAR = '356938035643825';
const TRAM = '356938035643833';
const DEVICES = {
  [VAN]: ['--name', 'Van 12', '--plate', 'GA 731 KL'],
  [BUS]: ['--name', 'Bus 3'],
  [CAR]: ['--name', 'Car 9'],
  [TRAM]: ['--name', 'Tram 7'],
};
const LARGE_OWNER = 'large@example.com';
/** More than a tile shows one by one. */
const TRUCKS = 2_400;
const FEW = 20;
const AREA = { name: 'Depot', type: 'circle', center: { lat: 48.2, lng: 16.37 }, radius_m: 5_000 };
/** Small: without a graphics card each pixel of each frame costs. */
const SMALL = { viewport: { width: 480, height: 600 }, reducedMotion: 'reduce' } satisfies Look;
const PHONE = { viewport: { width: 360, height: 600 }, reducedMotion: 'no-preference' } satisfies Look;
const VIEW = "document.querySelector('.map').view";
const MAP = `${VIEW}.map`;

interface Place {
  readonly lng: number;
  readonly lat: number;
  readonly x: number;
  readonly y: number;
}

interface Resting {
  /** Of the map in the page, in pixels. */
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
  /** How far the free part is from the sides of the map. */
  readonly free: { readonly top: number; readonly bottom: number };
}

describe('the map of the console', { skip: withoutBrowser() }, () => {
  const opened = openConsole(DEVICES, { hasWebGl: true });

  before(async () => {
    // On both sides of 180°, and two on one spot.
    for (const imei of [BUS, CAR]) await opened.send(imei, { latitude: -17.8, longitude: -179.5 });
    // The last of them has come along a street.
    for (let n = 40; n > 0; n--) await opened.send(TRAM, { latitude: -17, longitude: 179 - n * 0.001 });
    await opened.send(TRAM, { latitude: -17, longitude: 179 });
    for (const latitude of [-17.8, -17.76]) await opened.send(VAN, { latitude, longitude: 179.5 });
    const token = await logIn(opened.pod, OWNER);
    assert.equal((await callApi(opened.pod, 'POST', '/v1/areas', { token, body: AREA })).status, 201);
  });

  /** Of the owner's page, since it was opened. */
  const tracksAsked: string[] = [];
  let entered: Promise<Visitor> | null = null;

  /**
   * The owner's page with the map, which tests share: without a graphics card each page compiles the programs that draw the
   * map anew, for seconds. The map is where the test before has left it.
   */
  async function enter({ viewport, ...media }: typeof SMALL | typeof PHONE = SMALL): Promise<Visitor> {
    const isFirst = entered === null;
    entered ??= opened.visitInTab(null, PHONE).then(async (visitor) => {
      visitor.page.on('request', (request) => {
        const { pathname } = new URL(request.url());
        if (pathname.startsWith('/api/v1/tiles/tracks/')) tracksAsked.push(pathname);
      });
      await visitor.logIn(OWNER);
      return visitor;
    });
    const visitor = await entered;
    const { page, complaints } = visitor;
    if (!isFirst) complaints.length = 0;
    await page.setViewportSize(viewport);
    await page.emulateMedia({ colorScheme: null, ...media });
    await page.goto(`${opened.pod.api}/console#map`);
    await waitFor(() => page.evaluate(`${VIEW}?.vehicleAt('${VAN}') != null`), 'Van 12 is not on the map');
    return visitor;
  }

  /** Waits until the map has not moved for some frames, and returns where it and the part that no panel covers are. */
  async function rest(page: Page): Promise<Resting> {
    const read = () =>
      page.evaluate<Resting | null>(`(async () => {
        const frame = () => new Promise(requestAnimationFrame);
        const map = ${MAP};
        const seen = () => {
          const { x, y, width, height } = map.getContainer().getBoundingClientRect();
          return { x, y, width, height, free: map.getPadding(), camera: [map.getCenter(), map.getZoom()] };
        };
        const before = seen();
        for (let n = 0; n < 3; n++) await frame();
        const after = seen();
        return !map.isMoving() && JSON.stringify(before) === JSON.stringify(after) ? after : null;
      })()`);
    let resting: Resting | null = null;
    await waitFor(async () => {
      resting = await read();
      return resting !== null;
    }, 'the map does not come to rest');
    return resting as unknown as Resting;
  }

  /** Waits until a layer shows features, or none. */
  const shows = (page: Page, layer: string, isShown = true) =>
    waitFor(
      async () => (await drawn(page, layer)) > 0 === isShown,
      `${layer} is ${isShown ? 'not ' : ''}drawn`,
    );

  /** Shows another part of the earth at once. Nothing is returned: the map itself would be sent here. */
  const jump = (page: Page, options: string) => page.evaluate(`void ${MAP}.jumpTo(${options})`);

  const placeOf = (page: Page, imei: string): Promise<Place> =>
    page.evaluate<Place>(`${VIEW}.vehicleAt('${imei}')`);

  /** How many features of the layer are seen; 0 without the layer. */
  const drawn = (page: Page, layer: string): Promise<number> =>
    page.evaluate<number>(
      `${MAP}.getLayer('${layer}') === undefined ? 0 : ${MAP}.queryRenderedFeatures({ layers: ['${layer}'] }).length`,
    );

  test('has the roads that the fleet has driven, below the vehicles, by few calls', async () => {
    const visitor = await enter(PHONE);
    await shows(visitor.page, 'tracks');
    assert.ok(tracksAsked.length > 0 && tracksAsked.length < 20, tracksAsked.join());
    const stacked = ['land', 'tracks', 'area-fill'];
    const layers = async () =>
      (await visitor.page.evaluate<string[]>(`${MAP}.getLayersOrder()`)).filter((id) => stacked.includes(id));
    await waitForEqual(layers, stacked, 'the order of layers');
    await visitor.page.emulateMedia({ colorScheme: 'dark' });
    await waitFor(async () => {
      const color = `${MAP}.getLayer('tracks') && ${MAP}.getPaintProperty('tracks', 'line-color')`;
      return JSON.stringify(await visitor.page.evaluate(color))?.includes('#5d6975');
    }, 'tracks are not drawn in the colour of the dark');
    await shows(visitor.page, 'tracks');
    assert.deepEqual(visitor.complaints, []);
  });

  test('shows the fleet across 180°, tells vehicles on one spot apart, and follows one that moves, with its trail', async () => {
    const { page, complaints } = await enter(PHONE);
    await page.getByText('Choose a vehicle here or on the map.').waitFor();
    // Panels cover the rest of the map.
    await waitFor(async () => {
      const { free } = await rest(page);
      return free.top > 50 && free.bottom > 150;
    }, 'the map does not know what panels cover');
    for (const imei of [VAN, BUS])
      await waitFor(async () => {
        const { width, height, free } = await rest(page);
        const { x, y } = await placeOf(page, imei);
        return x >= 0 && y >= free.top && x <= width && y <= height - free.bottom;
      }, `${imei} is not in the free part of the map`);

    /** Of the spot of the two, in pixels of the page. */
    const spotAt = async () => {
      const { x, y } = await rest(page);
      const place = await placeOf(page, BUS);
      return { x: x + place.x, y: y + place.y };
    };
    const { x, y } = await spotAt();
    await page.mouse.move(x, y);
    await page.locator('.spot-label', { hasText: 'Bus 3' }).waitFor();
    await page.mouse.click(x, y);
    const spot = page.getByLabel('Vehicles on this spot');
    await spot.getByText('2 vehicles here').waitFor();
    // They also stand apart on the map: the nearer one in the north of the spot, the other one in its south.
    await waitForEqual(() => drawn(page, 'spot-place'), 2, 'the vehicles around the spot');
    const fromSouth = await spotAt();
    await page.mouse.click(fromSouth.x, fromSouth.y + 36);
    await page.getByLabel(/^Chosen: /).waitFor();
    await spot.getByRole('button', { name: 'Car 9' }).click();
    await page.getByLabel('Chosen: Car 9').waitFor();

    const { lat, ways } = await glide(
      async () => (await placeOf(page, VAN)).lat,
      (latitude) => opened.send(VAN, { latitude, longitude: 179.5 }),
    );
    await page.getByLabel('Search').fill('ga731');
    await page.keyboard.press('Enter');
    await page.getByRole('button', { name: 'Follow' }).click();
    await page.getByText(`${2 + ways} points`, { exact: true }).waitFor();
    const becomesCentred = () =>
      waitFor(async () => {
        const { width, height, free } = await page.evaluate<Pick<Resting, 'width' | 'height' | 'free'>>(
          `(({ width, height }) => ({ width, height, free: ${MAP}.getPadding() }))(${MAP}.getContainer().getBoundingClientRect())`,
        );
        const at = await placeOf(page, VAN);
        return Math.hypot(at.x - width / 2, at.y - (free.top + height - free.bottom) / 2) < 2;
      }, 'the followed vehicle is not in the middle');
    await becomesCentred();
    await opened.send(VAN, { latitude: lat + 0.01, longitude: 179.51 });
    await waitFor(
      async () => Math.abs((await placeOf(page, VAN)).lng - 179.51) < 0.001,
      'the followed vehicle does not move on',
    );
    await becomesCentred();
    await page.getByLabel('Map', { exact: true }).press('ArrowLeft');
    await page.locator('button[aria-pressed="false"]', { hasText: 'Follow' }).waitFor();
    // From a zoom on names stand beside vehicles, but not over each other.
    const labelled = () => page.evaluate<string[]>(`${VIEW}.labelled`);
    await waitForEqual(labelled, [VAN], 'what has its name beside it');
    await jump(page, `{ center: ${VIEW}.vehicleAt('${BUS}'), zoom: 13 }`);
    await waitFor(
      async () => [BUS, CAR].includes((await labelled()).join()),
      'none of two on one spot has its name beside it, or both have',
    );
    await jump(page, '{ zoom: 11 }');
    await waitForEqual(labelled, [], 'what has its name beside it');
    for (const isShown of [false, true]) {
      await page.getByRole('button', { name: 'parked 0' }).click();
      await waitFor(
        async () => ((await placeOf(page, VAN)) !== null) === isShown,
        `a vehicle that passes the filter or not is not drawn so: ${isShown}`,
      );
    }
    assert.deepEqual(complaints, []);
  });

  test('areas and a trail that were refused are read again, and what has come in between is in the trail once', async (t) => {
    const refused = (url: URL) => /\/history$|\/areas$/.test(url.pathname);
    const visitor = await opened.visit(t, { ...PHONE, reducedMotion: 'reduce' });
    const { page } = visitor;
    await page.clock.install();
    await page.route(refused, refuse);
    await visitor.logIn(OWNER);
    const missing = page.getByText('Not all areas are drawn');
    await missing.waitFor();
    await page.getByLabel('Search').fill('Tram');
    await page.keyboard.press('Enter');
    await page.getByText('0 points; slow down').waitFor();
    await opened.send(TRAM, { latitude: -17.1, longitude: 179 });
    await page.getByText('1 point; slow down').waitFor();
    await page.unroute(refused);
    await page.clock.fastForward(31_000);
    // The street, the place at its end, and the one that has come in between.
    await page.getByText('42 points', { exact: true }).waitFor();
    await missing.waitFor({ state: 'detached' });
  });

  test('shows a day of two vehicles beside each other: two ways, two graphs, and how far they are apart', async () => {
    const noon = new Date(Date.now() - 86_400_000).setHours(12, 0, 0, 0);
    for (let n = 0; n <= 2; n++)
      for (const [imei, latitude, delayMs] of [
        [VAN, 10, 0],
        [TRAM, 10.01, 1_800_000],
      ] as const)
        await opened.send(imei, { latitude, longitude: 20 + n / 100 }, noon + n * 60_000 + delayMs);
    const { page, complaints } = await enter();
    const address = `#map/${VAN}/${dateOf(noon)}`;
    await page.goto(`${opened.pod.api}/console${address}`);
    const shown = page.getByLabel('A day');
    const other = shown.getByLabel('Compare with');
    await other.fill('van');
    await other.press('Enter');
    await shown.getByText('choose another vehicle').waitFor();
    await other.fill('tram');
    await other.press('Enter');
    await waitFor(() => page.url().endsWith(`${address}/${TRAM}`));
    await page.reload();
    await shown.getByRole('img', { name: 'Speed of Tram 7 over the day' }).waitFor();
    const moment = shown.getByLabel('Moment of the day');
    await moment.press('Home');
    await shown.getByText(/\. Van 12 30 km\/h; Tram 7 has no point yet$/).waitFor();
    await moment.press('End');
    await shown.getByText(/Van 12 30 km\/h at .*, its last point; Tram 7 30 km\/h; 1\.1 km apart$/).waitFor();
    for (const [layer, least] of [
      ['trail', 1],
      ['trail-other', 1],
      ['trail-place', 2],
    ] as const)
      await waitFor(async () => (await drawn(page, layer)) >= least, `fewer than ${least} of ${layer}`);
    assert.deepEqual(await violationsIn(page), [], 'two vehicles');
    await shown.getByRole('button', { name: 'Do not compare' }).click();
    await shows(page, 'trail-other', false);
    await waitFor(() => page.url().endsWith(address), `the address does not end with ${address}`);
    assert.deepEqual(complaints, []);
  });

  /** The scheme in whose colours a vehicle is drawn; null while it is not drawn. */
  const schemeAt = async (page: Page, imei: string) => {
    const seen = (await page.evaluate(`(async () => {
      const view = ${VIEW};
      const canvas = document.querySelector('canvas.vehicles');
      const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
      // In the task that draws them: later the canvas is empty for all but the screen.
      await new Promise((resolve) => {
        view.map.once('render', () => resolve(copy.drawImage(canvas, 0, 0)));
        view.map.triggerRepaint();
      });
      const { x, y } = view.vehicleAt('${imei}') ?? { x: -1, y: -1 };
      const { vehicleColors } = await import('/console/map/baseStyle.ts');
      const pixel = [...copy.getImageData(x * devicePixelRatio, y * devicePixelRatio, 1, 1).data];
      return { pixel, light: vehicleColors('light').statuses, dark: vehicleColors('dark').statuses };
    })()`)) as { pixel: number[]; light: number[]; dark: number[] };
    const isAmong = (statuses: readonly number[]) =>
      [0, 3, 6, 9].some((at) =>
        [0, 1, 2].every((n) => Math.abs((statuses[at + n] as number) * 255 - (seen.pixel[n] as number)) < 3),
      );
    if (seen.pixel[3] !== 255) return null;
    return isAmong(seen.light) ? 'light' : isAmong(seen.dark) ? 'dark' : null;
  };

  test('draws vehicles and areas in the colours that the person prefers, and again after its graphics were away', async () => {
    const { page, complaints, show } = await enter();
    await jump(page, `{ center: ${VIEW}.vehicleAt('${VAN}'), zoom: 9 }`);
    for (const colorScheme of ['dark', 'light'] as const) {
      await page.emulateMedia({ colorScheme });
      await waitForEqual(() => schemeAt(page, VAN), colorScheme, 'the scheme of the vehicle');
    }
    await page.evaluate(`(() => {
      const gl = document.querySelector('canvas.vehicles').getContext('webgl2');
      globalThis.graphics = gl.getExtension('WEBGL_lose_context');
      graphics.loseContext();
    })()`);
    await waitForEqual(() => schemeAt(page, VAN), null, 'the scheme of the vehicle without graphics');
    await page.evaluate('graphics.restoreContext()');
    await waitForEqual(() => schemeAt(page, VAN), 'light', 'the scheme of the vehicle');

    await jump(page, '{ center: [16.37, 48.2], zoom: 9 }');
    await page.emulateMedia({ colorScheme: 'dark' });
    for (const layer of ['area-fill', 'land', 'place-names']) await shows(page, layer);
    // Its name is in the place of that of the city.
    await jump(page, '{ zoom: 11 }');
    await shows(page, 'area-name');
    await jump(page, '{ center: [-120, -40], zoom: 9 }');
    await shows(page, 'area-fill', false);
    await show('Areas');
    await page.getByRole('button', { name: 'Depot' }).click();
    await shows(page, 'area-fill');
    assert.deepEqual(complaints, []);
  });

  test('an area that is opened from another view comes into the part that no panel covers, also where little is free', async () => {
    const { page, complaints, show } = await enter();
    const token = await logIn(opened.pod, OWNER);
    const { body } = await callApi(opened.pod, 'GET', '/v1/areas', { token });
    const { id } = body.data.find(({ name }: { name: string }) => name === AREA.name);
    for (const height of [600, 490]) {
      await page.setViewportSize({ width: 480, height });
      await page.evaluate("location.hash = '#areas'"); // a test before may have chosen it
      await page.getByLabel(`Who is in ${AREA.name}`).waitFor({ state: 'detached' });
      await show('Map');
      await jump(page, '{ center: [179, -17], zoom: 12 }');
      await rest(page);
      await show('Devices');
      await page.evaluate(`location.hash = '#area/${id}'`);
      await page.getByLabel(`Who is in ${AREA.name}`).waitFor();
      const isFree = () =>
        page.evaluate<boolean>(`(() => {
          const { y } = ${MAP}.project([${AREA.center.lng}, ${AREA.center.lat}]);
          const { top, bottom } = ${MAP}.getPadding();
          return y > top && y < ${MAP}.getContainer().clientHeight - bottom;
        })()`);
      await waitFor(isFree, `the area is not in sight at a height of ${height}`);
      await jump(page, '{ center: [179, -17], zoom: 12 }');
      await page.getByRole('button', { name: AREA.name, pressed: true }).click();
      await waitFor(isFree, 'the area that was chosen already is not in sight again');
      // The panel gets another height on the way there.
      await page.emulateMedia({ reducedMotion: 'no-preference' });
      await jump(page, '{ center: [179, -17], zoom: 12 }');
      await page.getByRole('button', { name: AREA.name, pressed: true }).click();
      assert.ok(await page.evaluate<boolean>(`${MAP}.isMoving()`), 'the map does not fly');
      const setHeight = (css: string) =>
        page.evaluate(`document.querySelector('main').style.height = '${css}'`);
      await setHeight('120px');
      await waitFor(isFree, 'the map has not arrived');
      await setHeight('');
      await page.emulateMedia({ reducedMotion: 'reduce' });
      await rest(page);
      // Where it is a speck, the map goes near; where it is seen, the map stays.
      const zoom = () => page.evaluate<number>(`${MAP}.getZoom()`);
      await jump(page, `{ center: [${AREA.center.lng}, ${AREA.center.lat}], zoom: 4 }`);
      await page.getByRole('button', { name: AREA.name, pressed: true }).click();
      await waitFor(async () => (await zoom()) > 8, 'the map has not gone near an area that is a speck');
      await rest(page);
      const near = await zoom();
      await page.getByRole('button', { name: AREA.name, pressed: true }).click();
      assert.equal(await zoom(), near);
    }
    assert.deepEqual(complaints, []);
  });

  test('draws the draft of an area, and the pointer changes it', async () => {
    const { page, complaints } = await enter();
    const draft = (run: string) =>
      page.evaluate(`import('/console/areaDraft.ts').then((draft) => { ${run} })`);
    const body = () => draft('return draft.areaDraft.value.body') as Promise<AreaBody>;
    const becomes = (what: string, isSo: (now: AreaBody) => boolean) =>
      waitFor(async () => isSo(await body()), `the draft does not have ${what}`);
    await draft('draft.beginDraft()');
    await jump(page, '{ center: [180, 0], zoom: 12 }');
    const box = await rest(page);
    const at = (x: number, y: number) => [box.x + x, box.y + box.free.top + y - 70] as const;
    const drag = async (from: readonly [number, number], to: readonly [number, number]) => {
      await page.mouse.move(...from);
      await page.mouse.down();
      await page.mouse.move(...to, { steps: 3 });
      await page.mouse.up();
    };
    await page.mouse.click(...at(150, 100));
    await becomes('a centre', (now) => now.center !== null);
    const { center, radius_m } = await body();
    assert.equal(radius_m, 200);
    const radiusPx = 200 / (40_075_017 / (512 * 2 ** 12));
    await drag(at(150 + radiusPx, 100), at(250, 100));
    await becomes(
      'the radius that was dragged',
      (now) => Math.abs((now.radius_m as number) - 100 / (radiusPx / 200)) < 25,
    );
    const rim = (await body()).radius_m as number;
    await drag(at(150, 100), at(150, 130));
    await becomes('the centre that was dragged', (now) => (now.center?.lat ?? 0) < (center?.lat ?? 0));
    const moved = await body();
    assert.equal(moved.radius_m, rim);
    assert.ok(Math.abs((moved.center?.lng ?? 0) - (center?.lng ?? 0)) < 1e-6);
    await draft("draft.changeDraft({ type: 'polygon' })");
    const corners = [at(100, 80), at(350, 80), at(350, 180)];
    for (const [n, corner] of corners.entries()) {
      await page.mouse.click(...corner);
      await becomes(`corner ${n}`, (now) => now.points.length === n + 1);
    }
    const { points } = await body();
    await drag(at(350, 80), at(370, 100));
    await becomes('the corner that was dragged', (now) => (now.points[1]?.lat ?? 0) < (points[1]?.lat ?? 0));
    const after = (await body()).points;
    assert.deepEqual([points.length, after.length, after[0], after[2]], [3, 3, points[0], points[2]]);
    assert.ok(
      after.every(({ lng }) => Math.abs(lng) <= 180) &&
        new Set(after.map(({ lng }) => Math.sign(lng))).size === 2,
    );
    // A click chooses a vertex, which a key removes; another key brings it back.
    await page.mouse.click(...at(370, 100));
    await page.keyboard.press('Delete');
    await becomes('one corner less', (now) => now.points.length === 2);
    await page.keyboard.press('Control+z');
    await waitForEqual(async () => (await body()).points, after, 'the draft before the removal');
    await page.mouse.click(...at(350, 180), { button: 'right' });
    await becomes('one corner less', (now) => now.points.length === 2);
    assert.deepEqual(complaints, []);
  });

  test('a fleet that is too large for the page is in clusters that add up, and is one by one where the map is near', async (t) => {
    await makeOwner(opened.admin, LARGE_OWNER);
    const trucks = Array.from({ length: TRUCKS }, (_, n) => simulatedImei(n));
    const groupOf = (n: number) => (n % 2 === 0 ? 'even' : 'odd');
    const lines = trucks.map((imei, n) => ({ imei, name: `Truck ${n}`, groups: [groupOf(n)] }));
    await opened.admin.importDevices(LARGE_OWNER, lines);
    const send = (n: number, latitude: number, longitude: number, more: object = {}) => {
      const point = { imei: trucks[n], recorded_at: Date.now() - 60_000, latitude, longitude, heading: 0 };
      return { ...point, speed_kmh: n % 4 === 0 ? 0 : 30, ...more };
    };
    // Twenty are far from the others.
    const placed = trucks.map((_, n) =>
      n < FEW ? send(n, 41.9, 12.4 + n / 1_000) : send(n, 45 + (n % 70) / 100, 5 + n / 1_000),
    );
    await opened.pod.points(placed);

    const visitor = await opened.visitInTab(t, { ...SMALL, viewport: { width: 620, height: 480 } });
    const { page, complaints, show } = visitor;
    await page.evaluate(
      "import('/console/largeFleet.ts').then(({ LIMITS }) => Object.assign(LIMITS, { fleet: 1000, view: 500 }))",
    );
    await visitor.logIn(LARGE_OWNER);
    const status = page.getByRole('group', { name: 'Status' });
    await page.getByText(/^2\s400 vehicles, most of them in clusters/).waitFor();
    await status.getByRole('button', { name: 'moving 1\u00a0800' }).waitFor();
    await shows(page, 'cluster');
    assert.deepEqual(await violationsIn(page), [], 'clusters');
    await status.getByRole('button', { name: 'parked 600' }).click();
    await page.getByText(/^600 vehicles, most/).waitFor();
    await status.getByRole('button', { name: 'parked 600' }).click();
    await page.getByText(/^2\s400 vehicles, most/).waitFor();
    await opened.pod.points([send(3, 41.9, 12.4, { recorded_at: Date.now() - 50_000, alarm: 'first' })]);

    const isShown = (n: number) => page.evaluate<boolean>(`${VIEW}.vehicleAt('${trucks[n]}') !== null`);
    const becomesShown = (n: number, isSo = true) =>
      waitFor(async () => (await isShown(n)) === isSo, `truck ${n} is ${isSo ? 'not ' : ''}shown`);
    // What happens between two streams comes with the second.
    const asked = Promise.withResolvers<Route>();
    await page.route(/stream\?bbox/, (route) => asked.resolve(route), { times: 1 });
    await jump(page, '{ center: [12.41, 41.9], zoom: 12 }');
    const route = await asked.promise;
    await opened.pod.points([send(5, 41.9, 12.406, { recorded_at: Date.now() - 45_000, alarm: 'between' })]);
    await route.continue();
    for (const n of [1, 2, FEW - 1]) await becomesShown(n);
    assert.equal(await isShown(FEW), false);
    for (const layer of ['cluster', 'single']) await shows(page, layer, false);
    await opened.pod.points([
      send(1, 41.9, 12.404, { recorded_at: Date.now() - 40_000, alarm: 'second' }),
      send(2, 10, 10, { recorded_at: Date.now() - 40_000 }),
    ]);
    await becomesShown(2, false);
    await page.getByLabel('Group').fill('even');
    await page.getByLabel('Group').press('Enter');
    await becomesShown(1, false);
    await becomesShown(4);
    await page.getByLabel('Group').fill('');
    await becomesShown(1);

    // Beyond the margin of the followed view, another one is followed.
    const far = TRUCKS - 1;
    const { longitude, latitude } = placed[far] as (typeof placed)[number];
    await jump(page, `{ center: [${longitude}, ${latitude}], zoom: 11 }`);
    await becomesShown(far);
    await becomesShown(1, false);

    await page.getByLabel('Search').fill(`truck ${far}`);
    await page.keyboard.press('Enter');
    const card = page.getByLabel(`Chosen: Truck ${far}`);
    await card.waitFor();
    await becomesShown(far);
    await jump(page, '{ center: [12.41, 41.9], zoom: 12 }');
    await becomesShown(1);
    await card.waitFor();
    await show('Events');
    for (const alarm of ['first', 'between', 'second']) {
      await page.getByText(alarm).first().waitFor();
      assert.equal(await page.getByText(alarm).count(), 1, alarm);
    }
    await show('Devices');
    await page.getByText('2 400 of 2 400 devices; 1 to 50 are shown').waitFor();
    await page.getByRole('button', { name: 'Next' }).click();
    await page.getByText('51 to 100 are shown').waitFor();
    await page.getByLabel('Search').fill('truck 239');
    await page.getByText('11 of 2 400 devices').waitFor();
    assert.deepEqual(await violationsIn(page), [], 'a list with pages');
    // The service of a busy machine refuses a call, and the page makes it again.
    assert.deepEqual(
      complaints.filter((line) => !line.includes('status of 503')),
      [],
    );
  });

  /** The map of a pod with these tiles, and its vehicles above. */
  async function enterWithTiles(t: TestContext, tiles: string): Promise<Visitor> {
    const env = { ...NO_LIMITS, ROLES: 'api', CONSOLE_TILES: tiles };
    const pod = await startPod(opened.url, { t, env });
    const visitor = await visitConsole(t, opened.browser, pod.api, SMALL);
    await visitor.logIn(OWNER);
    await visitor.page.locator('.maplibregl-canvas ~ canvas.vehicles').waitFor({ state: 'attached' });
    return visitor;
  }

  test('has a file of tiles as its base, with its source in a corner, and draws streets by their rank, with edges and names, in each of three schemas', async (t) => {
    const schemas = [
      { of: 'roads', named: 'roads', places: 'places', key: 'kind' },
      { of: 'transportation', named: 'transportation_name', places: 'place', key: 'class' },
      { of: 'streets', named: 'street_labels', places: 'place_labels', key: 'kind' },
    ];
    const rising = [
      ['path', 'minor_road', 'medium_road', 'major_road', 'highway'],
      ['path', 'minor', 'tertiary', 'primary', 'motorway'],
      ['footway', 'residential', 'secondary', 'primary', 'motorway'],
    ];
    const yOf = (schema: number, n: number): number => 500 + 1_000 * schema + 90 * n;
    const layers = schemas.flatMap(({ of, named, places, key }, schema) => {
      const [roads, names, place] = [new VectorTile(of), new VectorTile(named), new VectorTile(places)];
      for (const [n, kind] of [...(rising[schema] ?? []), 'rail'].entries())
        for (const layer of of === named ? [roads] : [roads, names])
          layer.add(null, { [key]: kind, name: `${kind} ${schema}` }, lineAt(yOf(schema, n)));
      const point = { kind: 'point', paths: [[2_000, yOf(schema, 7)]] } as const;
      place.add(null, { [key]: 'town', name: `Town ${schema}` }, point);
      return of === named ? [roads, place] : [roads, names, place];
    });
    const ids = ['water', ...schemas.flatMap(({ of, named, places }) => [of, named, places])];
    const metadata = { vector_layers: ids.map((id) => ({ id })), attribution: 'Somebody' };
    const tile = Buffer.concat([vectorTile('water'), ...layers.map((layer) => layer.finish())]);
    const { page, complaints } = await enterWithTiles(
      t,
      await tileFile(t, { type: MVT, tile, zoom: STREETS_ZOOM, metadata }),
    );
    await page.getByText('Somebody').waitFor();
    await jump(page, '{ center: [0.01, -0.01], zoom: 14 }');
    await shows(page, 'tiles-water');
    await page.emulateMedia({ colorScheme: 'dark' });
    await shows(page, 'tiles-water');
    for (const [schema, { of, named, places }] of schemas.entries()) {
      await jump(page, `{ center: ${JSON.stringify(placeInTile(2_000, yOf(schema, 3)))}, zoom: 14 }`);
      const namesIn = (layer: string): Promise<string[]> =>
        page.evaluate(
          // The other style comes a moment after its colours.
          `${MAP}.getLayer('${layer}') === undefined ? [] : [...new Set(${MAP}.queryRenderedFeatures({ layers: ['${layer}'] }).map(({ properties }) => properties.name))]`,
        );
      const kinds = rising[schema] ?? [];
      await waitFor(
        async () => (await namesIn(`tiles-${places}-names`)).includes(`Town ${schema}`),
        'no town',
      );
      await waitFor(async () => {
        const names = await namesIn(`tiles-${named}-names`);
        return kinds.every((kind) => names.includes(`${kind} ${schema}`));
      }, `the roads of ${of} lack their names`);
      assert.ok(!(await namesIn(`tiles-${named}-names`)).includes(`rail ${schema}`), 'a rail is no road');
      /** How far from its middle a road is still drawn. */
      const reach = (layer: string, n: number): Promise<number> =>
        page.evaluate(`(() => {
          const { x, y } = ${MAP}.project(${JSON.stringify(placeInTile(2_000, yOf(schema, n)))});
          let px = 0;
          while (px < 20 && ${MAP}.queryRenderedFeatures([x, y + px], { layers: ['${layer}'] }).length > 0) px += 0.25;
          return px;
        })()`);
      const reaches: number[] = [];
      for (const n of kinds.keys()) reaches.push(await reach(`tiles-${of}`, n));
      const isRising = reaches.every((px, n) => px > (reaches[n - 1] ?? 0));
      assert.ok(isRising, `${of}: ${reaches.join(', ')} px`);
      for (const n of [1, 4])
        assert.ok((await reach(`tiles-${of}-casing`, n)) > (reaches[n] ?? 0), `${of}: a road without edges`);
      assert.equal(await reach(`tiles-${of}`, 5), 0);
      assert.ok((await reach(`tiles-${of}-rail`, 5)) > 0);
    }
    assert.deepEqual(complaints, []);
  });

  test('has a style of another host as its base, whose tiles it may fetch, and the world where it does not come', async (t) => {
    const asked = new Set<string>();
    const host = createServer((request, response) => {
      asked.add(request.url ?? '');
      response.setHeader('Access-Control-Allow-Origin', '*');
      response.end(request.url === '/style' ? JSON.stringify(style) : vectorTile('water'));
    }).listen(0, '127.0.0.1');
    t.after(() => host.close());
    await once(host, 'listening');
    const address = `127.0.0.1:${(host.address() as { port: number }).port}`;
    const origin = `http://${address}`;
    const style = {
      version: 8,
      sources: { tiles: { type: 'vector', tiles: [`${origin}/{z}/{x}/{y}`], maxzoom: 0 } },
      layers: [{ id: 'sea', type: 'fill', source: 'tiles', 'source-layer': 'water' }],
    };
    const { page, complaints } = await enterWithTiles(t, `${origin}/style`);
    await shows(page, 'sea');
    assert.deepEqual([...asked].sort(), ['/0/0/0', '/style']);
    assert.deepEqual(
      complaints.filter((line) => !line.startsWith(`asked: ${origin}/`)),
      [],
    );

    host.close();
    host.closeAllConnections();
    await page.reload();
    await page.getByText(`The base map of ${address} cannot be loaded.`).waitFor();
    await shows(page, 'land');
  });
});

/** Of the file with streets. */
const STREETS_ZOOM = 12;

const lineAt = (y: number) => ({ kind: 'line', paths: [[0, y, TILE_EXTENT, y]] }) as const;

/** Where a place of a tile south east of 0° N 0° E is on the earth. */
function placeInTile(x: number, y: number): readonly [lng: number, lat: number] {
  const [right, down] = [x, y].map((units) => units / TILE_EXTENT / 2 ** STREETS_ZOOM) as [number, number];
  return [right * 360, (-Math.atan(Math.sinh(2 * Math.PI * down)) * 180) / Math.PI];
}

/** The page may have given up the request. */
const refuse = (route: Route): Promise<void> =>
  route
    .fulfill({ status: 429, json: { error: { code: 'TOO_MANY_REQUESTS', message: 'slow down' } } })
    .catch(() => undefined);
