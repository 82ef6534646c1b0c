import { mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { TestContext } from 'node:test';
import { setTimeout as sleep } from 'node:timers/promises';
import { openSql } from '../../src/postgres/sql.ts';
import { identifier } from '../../src/postgres/sqlText.ts';
import { type Line, openLine } from '../support/line.ts';
import { type Admin, adminOf } from '../support/postgres/admin.ts';
import { databaseUrl } from '../support/postgres/cluster.ts';
import type { OwnPostgres } from '../support/postgres/ownPostgres.ts';
import type { TestRedis } from '../support/redis.ts';
import { type ServiceProcess, startProcess } from '../support/service.ts';
import { deliveringEnv } from '../support/webhooks/webhookProcesses.ts';
import type { StartedProcess } from './record.ts';

/** Retries of webhooks begin after twice as long. */
const WEBHOOK_MINUTE_MS = 20;
/** Before a pod that could not start is started again. */
const START_PAUSE_MS = 200;

/** What all runs of a file share. A run leaves it as it found it. */
export interface Machines {
  readonly postgres: OwnPostgres;
  readonly redis: TestRedis;
}

/** Pods, each with lines of its own to Postgres, Redis and its callers, and a clock of its own. */
export interface Site extends Machines {
  readonly pods: readonly SimulatedPod[];
  readonly admin: Admin;
  /** The lines of administrators. */
  readonly adminLines: readonly Line[];
  /** Every process that was started. */
  readonly processes: readonly StartedProcess[];
}

/** Starts one on a new database. `versions`: of each pod, the folders of the versions that its processes run by turns. */
export async function startSite(
  t: TestContext,
  machines: Machines,
  name: string,
  versions: readonly (readonly string[])[],
): Promise<Site> {
  const { postgres, redis } = machines;
  const url = await createDatabase(postgres.url, name);
  const folder = await mkdtemp(join(tmpdir(), 'fleet-site-'));
  t.after(() => rm(folder, { recursive: true }));
  const env = await deliveringEnv(t, url, WEBHOOK_MINUTE_MS, {
    ROLES: 'api,ingest,delivery',
    NODE_OPTIONS: `--import=${join(import.meta.dirname, 'steppedClock.ts')}`,
  });
  const processes: StartedProcess[] = [];
  const pods = await Promise.all(
    versions.map(async (projects, n) => {
      const clockFile = join(folder, `clock${n}`);
      await writeFile(clockFile, '0');
      const lines = {
        postgres: await openLine(t, portOf(url)),
        redis: await openLine(t, portOf(redis.url)),
        api: await openLine(t, null),
        ingest: await openLine(t, null),
      };
      const own = {
        ...env,
        DATABASE_URL: withPort(url, lines.postgres.port),
        REDIS_URL: withPort(redis.url, lines.redis.port),
        FLEET_TEST_CLOCK: clockFile,
      };
      let starts = 0;
      const launch = () => startProcess(t, own, projects[starts++ % projects.length]);
      return new SimulatedPod(n, lines, clockFile, launch, processes);
    }),
  );
  const adminLines = [await openLine(t, portOf(url)), await openLine(t, portOf(redis.url))] as const;
  const [toPostgres, toRedis] = adminLines;
  const admin = adminOf(withPort(url, toPostgres.port), withPort(redis.url, toRedis.port));
  return { ...machines, pods, admin, adminLines, processes };
}

const portOf = (url: string): number => Number(new URL(url).port);

function withPort(url: string, port: number): string {
  const other = new URL(url);
  other.port = String(port);
  return other.href;
}

/** A copy of the migrated database of that Postgres. */
async function createDatabase(url: string, name: string): Promise<string> {
  const sql = openSql(databaseUrl(url, 'template1'), { maxConnections: 1, name: 'test admin' });
  const template = new URL(url).pathname.slice(1);
  await sql`create database ${identifier(name)} template ${identifier(template)}`;
  await sql.end();
  return databaseUrl(url, name);
}

/** A pod and its machine: its lines and its clock stay when its process is started anew. */
export class SimulatedPod {
  readonly n: number;
  readonly lines: Readonly<Record<'postgres' | 'redis' | 'api' | 'ingest', Line>>;
  readonly #clockFile: string;
  readonly #launch: () => ServiceProcess;
  readonly #processes: StartedProcess[];
  #service: ServiceProcess | null = null;
  #starting: Promise<void> = Promise.resolve();
  /** The number of its process; null: there is none. */
  process: number | null = null;
  isPaused = false;
  /** What its processes have logged. */
  readonly logs: {
    readonly process: number;
    readonly lines: readonly string[];
    readonly errors: readonly string[];
  }[] = [];

  constructor(
    n: number,
    lines: SimulatedPod['lines'],
    clockFile: string,
    launch: () => ServiceProcess,
    processes: StartedProcess[],
  ) {
    this.n = n;
    this.lines = lines;
    this.#clockFile = clockFile;
    this.#launch = launch;
    this.#processes = processes;
  }

  /** Starts a process, again and again until it listens. */
  start(): Promise<void> {
    this.#starting = this.#start();
    return this.#starting;
  }

  /** Settles when it listens, if it is starting. */
  get started(): Promise<void> {
    return this.#starting;
  }

  async #start(): Promise<void> {
    for (;;) {
      const startedAtMs = performance.now();
      const service = this.#launch();
      const number = this.#processes.push({ process: this.#processes.length, pod: this.n, startedAtMs }) - 1;
      this.logs.push({ process: number, lines: service.lines, errors: service.errors });
      this.#service = service;
      const addresses = await service.listening.catch(() => null);
      if (addresses !== null) {
        this.lines.api.target = portOf(addresses.api);
        this.lines.ingest.target = portOf(addresses.ingest);
        this.process = number;
        return;
      }
      await service.ended;
      await sleep(START_PAUSE_MS);
    }
  }

  /** Ends its process. */
  async end(signal: 'SIGKILL' | 'SIGTERM'): Promise<void> {
    await this.#starting;
    this.#service?.child.kill(signal);
    await this.#service?.ended;
    this.process = null;
    this.lines.api.target = null;
    this.lines.ingest.target = null;
  }

  /** Lets it stand still until `resume`. */
  pause(): void {
    this.isPaused = true;
    this.#service?.child.kill('SIGSTOP');
  }

  resume(): void {
    this.isPaused = false;
    this.#service?.child.kill('SIGCONT');
  }

  /** Sets the clock of its machine wrong by so much. */
  async setClock(wrongByMs: number): Promise<void> {
    await writeFile(this.#clockFile, String(wrongByMs));
    if (this.process !== null) this.#service?.child.kill('SIGUSR2');
  }
}
