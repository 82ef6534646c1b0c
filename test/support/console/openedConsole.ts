import type { TestContext } from 'node:test';
import type { Browser, BrowserContext, BrowserContextOptions } from 'playwright-core';
import type { Env } from '../../../src/config.ts';
import { makeOwner } from '../http/application.ts';
import { newContext, startBrowser } from '../http/browser.ts';
import { NO_LIMITS, type Pod, startPod } from '../pod.ts';
import { type Admin, adminOf } from '../postgres/admin.ts';
import { createDatabase } from '../postgres/postgres.ts';
import { started } from '../started.ts';
import { type Look, type Visitor, visitConsole, visitInTab } from './visitor.ts';

export const OWNER = 'owner@example.com';
export const VAN = '356938035643809';
export const BUS = '356938035643817';
export const POD_ENV = { ...NO_LIMITS, ROLES: 'api,ingest' };

export interface OpenedConsole {
  /** Of the database. */
  readonly url: string;
  readonly admin: Admin;
  readonly pod: Pod;
  readonly browser: Browser;
  /** Sends a point two seconds after the one before, or of the time that is given. */
  send(imei: string, place: object, recordedAtMs?: number): Promise<unknown>;
  /** A person with a browser of their own, until the test is over. */
  visit(t: TestContext, options?: BrowserContextOptions): Promise<Visitor>;
  /** A person with a tab of the browser that all tests share, whose page comes from its cache; closed after the test, or with the browser. */
  visitInTab(t: TestContext | null, look?: Look): Promise<Visitor>;
  /** The person that all tests share, at the login, and with nothing that the tests before have left. */
  visitAgain(): Promise<Visitor>;
}

/** One pod, whose owner has these devices by IMEI, and one browser for all tests of the suite that calls this. */
export function openConsole(
  devices: Readonly<Record<string, readonly string[]>>,
  { hasWebGl = false, env = POD_ENV }: { hasWebGl?: boolean; env?: Env } = {},
): OpenedConsole {
  let clockMs = Date.now() - 300_000;
  let shared: Promise<Visitor> | null = null;
  let tabs: Promise<BrowserContext> | null = null;
  return started(
    async () => {
      const { url } = await createDatabase();
      const admin = adminOf(url);
      await makeOwner(admin, OWNER);
      for (const [imei, options] of Object.entries(devices)) await admin.device(OWNER, imei, ...options);
      const pod = await startPod(url, { env });
      const browser = await startBrowser({ hasWebGl });
      const send: OpenedConsole['send'] = (imei, place, recorded_at = clockMs) => {
        clockMs += 2_000;
        return pod.points([{ imei, recorded_at, speed_kmh: 30, heading: 45, ...place }]);
      };
      const visitAgain = async () => {
        const isFirst = shared === null;
        shared ??= visitConsole(null, browser, pod.api);
        const visitor = await shared;
        if (!isFirst) await visitor.startAnew();
        return visitor;
      };
      const visit: OpenedConsole['visit'] = (t, options) => visitConsole(t, browser, pod.api, options);
      const inTab: OpenedConsole['visitInTab'] = async (t, look) => {
        tabs ??= newContext(browser);
        return visitInTab(t, await tabs, pod.api, look);
      };
      return { url, admin, pod, browser, send, visit, visitInTab: inTab, visitAgain };
    },
    async ({ browser, pod }) => {
      await browser.close();
      await pod.stop();
    },
  );
}
