import type { TestContext } from 'node:test';
import type { Browser, BrowserContext, BrowserContextOptions, Page } from 'playwright-core';
import { PASSWORD } from '../http/application.ts';
import { newContext } from '../http/browser.ts';

/** A person with the console of a service in a browser. */
export interface Visitor {
  readonly page: Page;
  /** All that the page complained of, and every other host that it asked. */
  readonly complaints: string[];
  logIn(email: string): Promise<void>;
  show(view: string): Promise<void>;
  /** Back at the login, as in a new tab. */
  startAnew(): Promise<void>;
}

/** Small: without a graphics card each pixel of the map costs. */
const VIEWPORT = { width: 900, height: 560 };

/** How a person looks at a page. */
export type Look = Pick<BrowserContextOptions, 'viewport' | 'colorScheme' | 'reducedMotion'>;

/** Opens the login of the service at `api` in a browser of its own; closed after the test, or with the browser. */
export async function visitConsole(
  t: TestContext | null,
  browser: Browser,
  api: string,
  options: BrowserContextOptions = {},
): Promise<Visitor> {
  const context = await newContext(browser, { viewport: VIEWPORT, ...options });
  t?.after(() => context.close());
  return visitFrom(await context.newPage(), api);
}

/** The same in a new tab of a browser, which has loaded the page before; closed after the test. */
export async function visitInTab(
  t: TestContext | null,
  context: BrowserContext,
  api: string,
  { viewport, ...media }: Look = {},
): Promise<Visitor> {
  const page = await context.newPage();
  t?.after(() => page.close());
  await page.setViewportSize(viewport ?? VIEWPORT);
  await page.emulateMedia(media);
  return visitFrom(page, api);
}

async function visitFrom(page: Page, api: string): Promise<Visitor> {
  const complaints: string[] = [];
  page.on('console', (message) => {
    // Chromium says this of a form that opens while a person is in another field, which is as it should be.
    if (/^Autofocus processing was blocked/.test(message.text())) return;
    // On a busy machine Postgres may answer too late, and the API says so. Tests wait for what the page has to show.
    if (/responded with a status of 503/.test(message.text())) return;
    // Chromium ends all requests when an interface of the machine comes or goes, and the page asks again.
    if (/net::ERR_NETWORK_CHANGED/.test(message.text())) return;
    complaints.push(`${message.type()}: ${message.text()} (${message.location().url})`);
  });
  page.on('pageerror', (error) => complaints.push(`thrown: ${error.message}`));
  page.on('request', (request) => {
    if (new URL(request.url()).origin !== api) complaints.push(`asked: ${request.url()}`);
  });
  const open = async () => {
    await page.goto(`${api}/console`);
    await page.waitForSelector('form');
  };
  await open();
  return {
    page,
    complaints,
    logIn: async (email) => {
      await page.getByLabel('E-mail').fill(email);
      await page.getByLabel('Password').fill(PASSWORD);
      await page.keyboard.press('Enter');
      await page.getByText('Live', { exact: true }).waitFor();
    },
    startAnew: async () => {
      await page.unrouteAll();
      await page.emulateMedia({ colorScheme: null });
      await page.setViewportSize(VIEWPORT);
      await page.evaluate('sessionStorage.clear(); localStorage.clear()');
      await open();
      complaints.length = 0;
    },
    show: (view) => page.getByRole('link', { name: view, exact: true }).click(),
  };
}
