import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openSql, type Sql } from '../../src/postgres/sql.ts';
import type { Prometheus } from '../guide/prometheus.ts';
import { type PodAddress, podAt } from '../support/pod.ts';
import { findFreePort } from '../support/ports.ts';
import { type Admin, adminOf } from '../support/postgres/admin.ts';
import { PROJECT, serviceEnv, startProcess } from '../support/service.ts';

/** Where a fault is made: the test that ends all it starts, and the Prometheus that is to notice it. */
export interface Stage {
  readonly t: TestContext;
  readonly prometheus: Prometheus;
}

/** A fault and the end of it. The alert has to fire after the one, and to rest after the other where there is one. */
export interface Prepared {
  cause(): Promise<unknown>;
  mend?(): Promise<unknown>;
}

/** What makes an alert fire, in words, and what is there before it. */
export interface Fault {
  readonly fault: string;
  /** How long a minute of the rule takes, where a second is too short for what a pod looks at every few seconds. */
  readonly minuteSeconds?: number;
  /** Needs a redis-server. */
  readonly needsRedis?: boolean;
  prepare(stage: Stage): Promise<Prepared>;
}

type Variables = Readonly<Record<string, string>>;

/** A pod in a process of its own, scraped on the same ports for its whole life. */
export interface SitePod extends PodAddress {
  signal(name: NodeJS.Signals): void;
  /** Kills it, unless it has ended, and starts it again, with these variables instead of those before. */
  restart(env?: Variables): Promise<void>;
}

/** An account with a key and two vehicles on a database, and the pods that serve it. */
export interface Site {
  readonly admin: Admin;
  readonly key: string;
  readonly sql: Sql;
  /** `project`: the folder of another version. */
  pod(env?: Variables, project?: string): Promise<SitePod>;
}

export const OWNER = 'owner@example.com';
export const VANS = ['350000000000001', '350000000000002'] as const;

export async function openSite({ t, prometheus }: Stage, url: string): Promise<Site> {
  const admin = adminOf(url);
  await admin.account(OWNER);
  const { key } = await admin.key(OWNER);
  await admin.importDevices(
    OWNER,
    VANS.map((imei) => ({ imei })),
  );
  const sql = openSql(url, { maxConnections: 2, name: 'test' });
  t.after(() => sql.end());
  return {
    ...{ admin, key, sql },
    pod: async (env = {}, project = PROJECT) => {
      const [port, ingestPort] = [await findFreePort(), await findFreePort()];
      const start = (own: Variables) =>
        startProcess(
          t,
          { ...serviceEnv(url), ...own, PORT: `${port}`, INGEST_PORT: `${ingestPort}` },
          project,
        );
      let process = start(env);
      const listening = await process.listening;
      await prometheus.scrape(`127.0.0.1:${ingestPort}`);
      return {
        ...podAt(listening),
        signal: (name) => void process.child.kill(name),
        restart: async (own = env) => {
          process.child.kill('SIGKILL');
          await process.ended;
          process = start(own);
          await process.listening;
        },
      };
    },
  };
}

/** A point of the first vehicle, so many seconds ago. */
export const pointOf = (imei: string, secondsAgo = 0, others: object = {}) => ({
  imei,
  recorded_at: Date.now() - secondsAgo * 1_000,
  latitude: 41.9,
  longitude: 12.5,
  ...others,
});

/** Does something over and over, and again when it fails, until it is told to stop or the test ends. */
export function repeat(t: TestContext, work: () => Promise<unknown>, pauseMs = 50): () => Promise<void> {
  let isOver = false;
  const running = (async () => {
    while (!isOver) {
      await work().catch(() => undefined); // what is asked has a fault
      await sleep(pauseMs);
    }
  })();
  t.after(() => {
    isOver = true;
  });
  return async () => {
    isOver = true;
    await running;
  };
}

/** Lets a process run only now and then, as a limit of processor time does, until it is told to stop or the test ends. */
export function throttle(
  { t }: Stage,
  signal: (name: 'SIGSTOP' | 'SIGCONT') => void,
  { runMs, stopMs }: { readonly runMs: number; readonly stopMs: number },
): () => Promise<void> {
  return repeat(
    t,
    async () => {
      signal('SIGSTOP');
      await sleep(stopMs);
      signal('SIGCONT');
    },
    runMs,
  );
}
