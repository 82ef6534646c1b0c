import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium } from 'playwright-core';
import { patienceMs } from '../patience.ts';

/** The first that is in PATH: the headless shell is the same browser without windows, and costs a third less. */
const NAMES = [
  'chromium-headless-shell',
  'chromium',
  'chromium-browser',
  'google-chrome',
  'google-chrome-stable',
  'chrome',
];

/** Why browser tests are skipped, or false where a Chromium is in PATH. */
export function withoutBrowser(): string | false {
  return findBrowser() === null ? 'no Chromium in PATH' : false;
}

function findBrowser(): string | null {
  const folders = (process.env['PATH'] ?? '').split(delimiter).filter((folder) => folder !== '');
  const found = NAMES.flatMap((name) => folders.map((folder) => join(folder, name))).find(isExecutable);
  return found ?? null;
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Draws WebGL without a graphics card. All else is drawn by the processor itself, which is faster than a program that acts as a card. */
const SOFTWARE_GL = [
  '--use-gl=angle',
  '--use-angle=swiftshader',
  '--enable-unsafe-swiftshader',
  '--disable-gpu-rasterization',
];
const WITHOUT_GL = ['--disable-gpu', '--disable-3d-apis'];

/**
 * Each window loads hundreds of files for pop-ups that nobody opens (the first two); the others ask hosts of their own or
 * change how pages of this machine load. Playwright's own list is replaced by this one.
 */
const DISABLED_FEATURES = [
  'WebUIOmniboxPopup',
  'WebUIOmniboxAimPopup',
  'AimEnabled',
  'HttpsUpgrades',
  'HttpsFirstBalancedModeAutoEnable',
  'LensOverlay',
  'MediaRouter',
  'NetworkTimeServiceQuerying',
  'OptimizationHints',
  'PaintHolding',
  'PreconnectToSearch',
  'SpareRendererForSitePerProcess',
  'Translate',
];

/** A headless Chromium that talks to nobody by itself. */
export function startBrowser({ hasWebGl = false } = {}): Promise<Browser> {
  const executablePath = findBrowser();
  if (executablePath === null) throw new Error('there is no Chromium in PATH');
  return chromium.launch({
    executablePath,
    args: [
      '--headless',
      '--no-sandbox',
      ...(hasWebGl ? SOFTWARE_GL : WITHOUT_GL),
      '--disable-quic',
      '--no-first-run',
      '--disable-background-networking',
      '--disable-component-update',
      '--disable-sync',
      `--disable-features=${DISABLED_FEATURES.join(',')}`,
    ],
  });
}

/** The best compression takes three seconds of a processor in each process that serves the console. */
const COMPRESSED_FAST = { 'Accept-Encoding': 'gzip' };

/** Ten frames a second instead of sixty: what moves is seen to move, and each frame costs processor time without a card. */
const FEW_FRAMES =
  'requestAnimationFrame = (draw) => setTimeout(() => draw(performance.now()), 100); cancelAnimationFrame = clearTimeout;';

/** More than the half a minute after which the console asks again for what a busy service has refused. */
const PATIENCE_MS = 60_000;

/** A person's windows of the browser, in which a wait ends when nothing can come any more. */
export async function newContext(
  browser: Browser,
  options: BrowserContextOptions = {},
): Promise<BrowserContext> {
  const context = await browser.newContext({ extraHTTPHeaders: COMPRESSED_FAST, ...options });
  context.setDefaultTimeout(patienceMs(PATIENCE_MS));
  await context.addInitScript(FEW_FRAMES);
  // Chromium ends all requests when an interface of the machine comes or goes. Without a script of it a page stays empty.
  context.on('requestfailed', (request) => {
    const isLost = request.failure()?.errorText === 'net::ERR_NETWORK_CHANGED';
    if (isLost && request.resourceType() === 'script')
      void request
        .frame()
        .page()
        .reload()
        .catch(() => undefined);
  });
  return context;
}
