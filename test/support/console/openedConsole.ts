import type { TestContext } from 'node:test';
import type { Browser, BrowserContextOptions } from 'playwright-core';
import { makeOwner } from '../http/application.ts';
import { startBrowser } from '../http/browser.ts';
import { NO_LIMITS, type Pod, startPod } from '../pod.ts';
import { adminOf } from '../postgres/admin.ts';
import { createDatabase } from '../postgres/postgres.ts';
import { started } from '../started.ts';
import { OWNER } from './servedConsole.ts';
import { type Visitor, visitConsole } from './visitor.ts';

export const POD_ENV = { ...NO_LIMITS, ROLES: 'api,ingest' };

export interface OpenedConsole {
  /** Of the database. */
  readonly url: string;
  readonly pod: Pod;
  readonly browser: Browser;
  /** Sends a point two seconds after the one before, or of the time that is given. */
  send(imei: string, place: object, recordedAtMs?: number): Promise<unknown>;
  visit(t: TestContext, options?: BrowserContextOptions): Promise<Visitor>;
}

/** One pod, whose owner has these devices by IMEI, and one browser for all tests of the suite that calls this. */
export function openConsole(
  devices: Readonly<Record<string, readonly string[]>>,
  { hasWebGl = false } = {},
): OpenedConsole {
  let clockMs = Date.now() - 300_000;
  return started(
    async () => {
      const { url } = await createDatabase();
      const admin = adminOf(url);
      await makeOwner(admin, OWNER);
      for (const [imei, options] of Object.entries(devices)) await admin.device(OWNER, imei, ...options);
      const pod = await startPod(url, { env: POD_ENV });
      const browser = await startBrowser({ hasWebGl });
      const send: OpenedConsole['send'] = (imei, place, recorded_at = clockMs) => {
        clockMs += 2_000;
        return pod.points([{ imei, recorded_at, speed_kmh: 30, heading: 45, ...place }]);
      };
      return { url, pod, browser, send, visit: (t, options) => visitConsole(t, browser, pod.api, options) };
    },
    async ({ browser, pod }) => {
      await browser.close();
      await pod.stop();
    },
  );
}
