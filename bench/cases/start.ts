import { setTimeout as sleep } from 'node:timers/promises';
import { copyDevices } from '../../src/devices/deviceRows.sql.ts';
import type { BenchCase, Part } from '../benchCase.ts';
import { smallAreas, storeAreas } from '../setup/areas.ts';
import { execute, openBenchSql } from '../setup/cluster.ts';
import { openNearestProbe } from '../setup/nearestProbe.ts';
import { createWorld } from '../setup/world.ts';
import { openWorker, type Worker } from '../worker.ts';
import type { StartAnswer, StartQuestion } from '../workers/startProbe.ts';

const DEVICES = 1_000_000;
const SMOKE_DEVICES = 1_000;
const DEVICES_PER_AREA = 10;
const CALM_SMOKE_SECONDS = 0.2;
const WARM_UP_MS = 1_000;
/** How often memory is looked at, in either time. */
const LOOK_MS = 250;

export const start: BenchCase = {
  about:
    'start of a process until it is ready, with everything in memory, and a reload of it while it serves',
  run: async (context) => {
    const { databaseUrl, sizes, smoke, seconds: calmSeconds, say } = context;
    const devices = sizes?.at(-1) ?? (smoke ? SMOKE_DEVICES : DEVICES);
    const { key } = await createWorld(context, devices);
    const areas = Math.min(devices, DEVICES) / DEVICES_PER_AREA;
    await storeAreas(databaseUrl, smallAreas(areas), say);
    const floorSeconds = await readAll(databaseUrl);
    const question = { kind: 'start', databaseUrl } as const;
    await using probe = openWorker<StartQuestion, StartAnswer>('startProbe');
    const startedAtMs = Date.now();
    const ready = await probe.ask({ ...question, isProfiled: false });
    const seconds = (ready.readyAtMs - startedAtMs) / 1_000;
    const reload = await measureReload(
      probe,
      ready,
      { databaseUrl, key },
      smoke ? CALM_SMOKE_SECONDS : calmSeconds,
    );
    const profiles = context.profile ? await profileStart({ ...question, isProfiled: true }) : [];
    const { rssMb } = ready;
    return {
      kind: 'measured',
      size: `${devices} devices, ${areas} areas of 20 vertices`,
      rows: [
        { what: 'start until ready', seconds, rssMb },
        { what: 'floor: reading the rows of the devices', seconds: floorSeconds },
        ...reload.rows,
      ],
      metrics: { seconds, rss_mb: rssMb, of_reading: seconds / floorSeconds, ...reload.metrics },
      profiles,
    };
  },
};

async function profileStart(question: StartQuestion): Promise<StartAnswer['profiles']> {
  await using probe = openWorker<StartQuestion, StartAnswer>('startProbe');
  return (await probe.ask(question)).profiles;
}

/**
 * Lets the service find another server, so that it reloads everything, while a customer calls nearest. `reload_peak`: the
 * most memory meanwhile by that before, both while it is called.
 */
async function measureReload(
  probe: Worker<StartQuestion, StartAnswer>,
  { url, ingestUrl }: StartAnswer,
  { databaseUrl, key }: { readonly databaseUrl: string; readonly key: string },
  calmSeconds: number,
): Promise<Part> {
  await using nearest = openNearestProbe(url, key);
  const mostMbUntil = async (isOver: () => boolean | Promise<boolean>): Promise<number> => {
    let mostMb = 0;
    do {
      await sleep(LOOK_MS);
      mostMb = Math.max(mostMb, (await probe.ask({ kind: 'memory' })).rssMb);
    } while (!(await isOver()));
    return mostMb;
  };
  // Asked for in the calm time too, since it costs the service something.
  const loadSeconds = async (): Promise<number> => {
    const metrics = await (await fetch(`${ingestUrl}/metrics`)).text();
    return Number(/^fleet_memory_load_seconds (.+)$/m.exec(metrics)?.[1]);
  };
  await nearest.during(() => sleep(WARM_UP_MS));
  const present = await loadSeconds();
  const calmUntilMs = performance.now() + 1_000 * calmSeconds;
  let [calmMb, peakMb] = [0, 0];
  const calm = await nearest.during(async () => {
    calmMb = await mostMbUntil(async () => (await loadSeconds()) > 0 && performance.now() > calmUntilMs);
  });
  const beside = await nearest.during(async () => {
    await execute(
      databaseUrl,
      `create or replace function server_history() returns text language sql as $$ select 'another server' $$`,
    );
    peakMb = await mostMbUntil(async () => (await loadSeconds()) !== present);
  });
  return {
    rows: [
      { what: 'nearest, calm', rssMb: calmMb, ...calm.percentiles() },
      {
        what: 'nearest beside a reload',
        rssMb: peakMb,
        seconds: await loadSeconds(),
        ...beside.percentiles(),
      },
    ],
    metrics: {
      reload_peak: peakMb / calmMb,
      reload_p99_of_calm: beside.percentile(0.99) / calm.percentile(0.99),
    },
  };
}

/** Seconds to read the rows of the devices as the service reads them, without using them. */
async function readAll(databaseUrl: string): Promise<number> {
  await using sql = openBenchSql(databaseUrl);
  const startMs = performance.now();
  await sql.begin(async (tx) => {
    await tx.unsafe('set local statement_timeout = 0'); // ten million take more than half a minute
    await copyDevices(tx, (devices) => void Array.from(devices));
  });
  return (performance.now() - startMs) / 1_000;
}
