import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { openSql } from '../../src/postgres/sql.ts';
import type { Line } from '../support/line.ts';
import { patienceMs } from '../support/patience.ts';
import { oneOf } from './clients.ts';
import type { Loss } from './record.ts';
import type { SimulatedPod, Site } from './site.ts';
import type { World } from './world.ts';

/** What happens to a part of the site; it settles when the part is well again. */
interface Fault {
  readonly name: string;
  /** Two faults of one part do not overlap. */
  readonly part: string;
  /** What pods are without meanwhile, and for so long until they have noticed the end of it. */
  readonly loses?: Pick<Loss, 'of' | 'pod'> & { readonly noticedMs: number };
  run(): Promise<void>;
}

export interface Faults {
  /** Of all that happened, with its time, for whoever reads a record. */
  readonly told: { readonly beginMs: number; readonly endMs: number; readonly name: string }[];
  /** What pods were without. */
  readonly losses: readonly Loss[];
  /** Lets things happen until it is stopped; settles when all is well again. */
  run(): Promise<void>;
  stop(): void;
}

export interface FaultOptions {
  /** How many may go on at a time. */
  readonly atOnce: number;
  /** Only those that are over in a moment. */
  readonly areCalm: boolean;
}

/** Longest of most faults, and of one in ten. */
const [SHORT_MS, LONG_MS] = [1_500, 8_000];
const PAUSE_MAX_MS = 600;
const CLOCK_MAX_MS = 6 * 3_600_000;
const DELAY_MAX_MS = 150;
/** A pod is connected again so long after the end of a fault. It takes what never answers for lost after ten seconds. */
const RECONNECTED_MS = patienceMs(3_000);
const SILENCE_NOTICED_MS = patienceMs(12_000);

export function faultsOf(site: Site, world: World, random: () => number, options: FaultOptions): Faults {
  const told: { beginMs: number; endMs: number; name: string }[] = [];
  const losses: Loss[] = [];
  const busy = new Set<string>();
  let isStopped = false;
  const all = faultsFor(site, world, random, options);
  const lane = async (): Promise<void> => {
    while (!isStopped) {
      await sleep(random() * PAUSE_MAX_MS);
      const fault = oneOf(random, all)();
      if (busy.has(fault.part)) continue;
      busy.add(fault.part);
      const beginMs = performance.now();
      await fault.run();
      const endMs = performance.now();
      told.push({ beginMs, endMs, name: `${fault.name} (${fault.part})` });
      if (fault.loses !== undefined) {
        const { noticedMs, ...lost } = fault.loses;
        losses.push({ ...lost, beginMs, endMs: endMs + noticedMs });
      }
      busy.delete(fault.part);
    }
  };
  return {
    told,
    losses,
    stop: () => {
      isStopped = true;
    },
    run: async () => {
      await Promise.all(Array.from({ length: options.atOnce }, lane));
      for (const pod of site.pods) {
        await pod.started;
        await pod.setClock(0);
      }
    },
  };
}

function faultsFor(
  site: Site,
  world: World,
  random: () => number,
  { areCalm }: FaultOptions,
): (() => Fault)[] {
  const { postgres, redis } = site;
  const whileMs = (): Promise<void> =>
    sleep(random() * (areCalm ? 300 : random() < 0.1 ? LONG_MS : SHORT_MS));
  const ofPod = (name: string, run: (pod: SimulatedPod) => Promise<void>) => (): Fault => {
    const pod = oneOf(random, site.pods);
    return { name, part: `pod ${pod.n}`, run: () => run(pod) };
  };
  const lines: readonly { part: string; line: Line; leadsTo?: Loss['of']; pod?: number }[] = [
    ...site.pods.flatMap(({ n: pod, lines: { postgres, redis, api, ingest } }) => [
      { part: `line of pod ${pod} to Postgres`, line: postgres, leadsTo: 'postgres' as const, pod },
      { part: `line of pod ${pod} to Redis`, line: redis, leadsTo: 'redis' as const, pod },
      { part: `line to the API of pod ${pod}`, line: api },
      { part: `line to the ingest of pod ${pod}`, line: ingest },
    ]),
    ...site.adminLines.map((line, n) => ({ part: `line ${n} of administrators`, line })),
    { part: 'line to receivers', line: world.receivers.line },
  ];
  const ofLine =
    (name: string, harm: (line: Line) => void, noticedMs = RECONNECTED_MS) =>
    (): Fault => {
      const { part, line, leadsTo, pod = null } = oneOf(random, lines);
      return {
        name,
        part,
        ...(leadsTo !== undefined && { loses: { of: leadsTo, pod, noticedMs } }),
        run: async () => {
          harm(line);
          await whileMs();
          line.heal();
        },
      };
    };
  const of = (part: Loss['of'], name: string, run: () => Promise<void>) => (): Fault => ({
    name,
    part,
    loses: { of: part, pod: null, noticedMs: RECONNECTED_MS },
    run,
  });
  const calm = [
    ofPod('killed', async (pod) => {
      await pod.end('SIGKILL');
      await whileMs();
      await pod.start();
    }),
    ofPod('its clock is set', (pod) => pod.setClock(Math.round((random() * 2 - 1) ** 3 * CLOCK_MAX_MS))),
    ofLine('delayed', (line) => {
      line.delayMs = random() * DELAY_MAX_MS;
    }),
    ofLine('cut', (line) => line.cut()),
    of('redis', 'emptied', async () => {
      const client = new Redis(redis.url);
      await client.flushall();
      client.disconnect();
    }),
  ];
  if (areCalm) return calm;
  return [
    ...calm,
    ofPod('stopped as for an update', async (pod) => {
      await pod.end('SIGTERM');
      await pod.start();
    }),
    ofPod('stands still', async (pod) => {
      pod.pause();
      await whileMs();
      pod.resume();
    }),
    ofLine('delayed', (line) => {
      line.delayMs = random() * DELAY_MAX_MS;
    }),
    ofLine('parted', (line) => line.part()),
    ofLine('held', (line) => line.hold()),
    ofLine('silent', (line) => line.fallSilent(), SILENCE_NOTICED_MS),
    ofLine('loses answers', (line) => line.loseAnswers(), SILENCE_NOTICED_MS),
    of('redis', 'away', async () => {
      await redis.stop();
      await whileMs();
      await redis.restart();
    }),
    of('redis', 'stands still', async () => {
      redis.pause();
      await whileMs();
      redis.resume();
    }),
    of('postgres', 'stopped', async () => {
      await postgres.stop();
      await whileMs();
      await postgres.start();
    }),
    of('postgres', 'killed', async () => {
      await postgres.kill();
      await whileMs();
      await postgres.start();
    }),
    of('postgres', 'stands still', async () => {
      await postgres.pause();
      await whileMs();
      await postgres.resume();
    }),
    of('postgres', 'its sessions are ended', async () => {
      const sql = openSql(postgres.url, { maxConnections: 1, name: 'test' });
      await sql`
        select pg_terminate_backend(pid) from pg_stat_activity
        where backend_type = 'client backend' and pid <> pg_backend_pid() and random() < ${random()}`;
      await sql.end();
    }),
  ];
}
