import { accessSync, constants } from 'node:fs';
import { delimiter, join } from 'node:path';
import { type Browser, chromium } from 'playwright-core';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable', 'chrome'];

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

/** Draws WebGL without a graphics card. */
const SOFTWARE_GL = ['--use-gl=angle', '--use-angle=swiftshader', '--enable-unsafe-swiftshader'];
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
