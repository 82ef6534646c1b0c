import type { TestContext } from 'node:test';
import type { Browser, BrowserContext, BrowserContextOptions, Page, Request } from 'playwright-core';
import { PASSWORD } from '../http/application.ts';
import { newContext } from '../http/browser.ts';
import { waitFor } from '../waitFor.ts';

/** A person with the console of a service in a browser. */
export interface Visitor {
  readonly page: Page;
  /** All that the page complained of, and every other host that it asked. */
  readonly complaints: string[];
  logIn(email: string): Promise<void>;
  show(view: string): Promise<void>;
  /** Back at the login with the settings of a new browser, and what the session before has asked for is answered. */
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
  const unanswered = new Set<Request>();
  page.on('request', (request) => {
    if (!new URL(request.url()).pathname.endsWith('/stream')) unanswered.add(request);
  });
  const answer = (request: Request) => void unanswered.delete(request);
  page.on('requestfinished', answer);
  page.on('requestfailed', answer);
  const open = async () => {
    unanswered.clear();
    await page.goto(`${api}/console`);
    await page.waitForSelector('form');
  };
  /** All that the browser keeps but when a tab last had the stream. */
  const settings = () =>
    page.evaluate<string>(
      "JSON.stringify(Object.entries(localStorage).filter(([name]) => name !== 'fleet-stream-at').sort())",
    );
  await open();
  const usual = await settings();
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
      // A logout costs a tenth of what loading the page anew costs. A failed test may have left something in front of it.
      await page
        .locator('header button', { hasText: 'Log out' })
        .evaluateAll(([leave]) => (leave as HTMLElement | undefined)?.click());
      await page.waitForSelector('input[type="password"]');
      await page.evaluate("location.hash = '#map'");
      if ((await settings()) !== usual || (await page.evaluate('sessionStorage.length')) !== 0) {
        await page.evaluate('sessionStorage.clear(); localStorage.clear()');
        await open();
      }
      await waitFor(
        () => unanswered.size === 0,
        () => `not answered: ${[...unanswered].map((request) => request.url()).join()}`,
      );
      complaints.length = 0;
    },
    show: (view) => page.getByRole('link', { name: view, exact: true }).click(),
  };
}
